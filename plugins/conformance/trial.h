// One check while it runs: makes calls into the plugin, notes what is wrong. A check goes on after
// a failure where it can; the first failure is reported in full, further ones are counted.
#ifndef TRINE_PLUGINS_CONFORMANCE_TRIAL_H_
#define TRINE_PLUGINS_CONFORMANCE_TRIAL_H_

#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "plugins/conformance/kit.h"

namespace trine::conformance {

// No status of the ABI: the call threw.
inline constexpr trine_status kThrew = -1;

const char* StatusName(trine_status status);

// What a fallible call said.
struct Answer {
  trine_status status = TRINE_OK;
  std::string message;  // "" when there was none

  bool Ok() const { return status == TRINE_OK; }
  std::string Text() const;  // "INTERNAL: the message"
};

// For calls that are part of no check.
class QuietSink : public Sink {
 public:
  void Begin(const std::string&) override {}
  void End(const Finding&) override {}
};

class Trial {
 public:
  explicit Trial(Sink* sink) : sink_(sink) {}

  void Fail(const std::string& detail);
  // A failure that explains the others: it is the one reported.
  void FailFirst(const std::string& cause);
  void Skip(const std::string& reason);
  void Note(const std::string& text) { note_ = text; }  // shown beside a pass
  void Alive() { sink_->Alive(); }
  bool failed() const { return failures_ != 0; }
  Finding Result(const std::string& name, double seconds) const;

  bool Expect(bool condition, const std::string& otherwise);
  bool ExpectOk(const Answer& answer, const std::string& what);
  // A refusal: one of `allowed` (none listed: any failure), with a message.
  bool ExpectRefused(const Answer& answer, const std::string& what,
                     std::initializer_list<trine_status> allowed = {});

  // Makes a fallible call, `call(trine_error*)`. An exception that comes out is a failure.
  template <class F>
  Answer Call(const char* function, F call) {
    Answer answer;
    trine_error err;
    std::memset(&err, kUnwritten, sizeof(err));
    try {
      answer.status = call(&err);
    } catch (...) {
      answer.status = kThrew;
      FailThrown(function);
    }
    ReadMessage(function, err, &answer);
    return answer;
  }
  void FailThrown(const std::string& function);

 private:
  static constexpr int kUnwritten = 0xA5;
  void ReadMessage(const char* function, const trine_error& err, Answer* answer);

  Sink* sink_;
  int failures_ = 0;
  bool skipped_ = false;
  std::string detail_;
  std::string note_;
};

// Runs checks one after the other and tells the sink. Not thread-safe.
class Runner {
 public:
  Runner(const KitOptions& options, Sink& sink);

  // `body` runs unless the name is filtered out or lies before the point to resume from.
  void Run(const std::string& name, const std::function<void(Trial&)>& body);
  // Whatever the filter says: for what no other check means anything without.
  void RunUnfiltered(const std::string& name, const std::function<void(Trial&)>& body);
  // Exceptions from functions that return nothing; they fail the check that is running.
  void NoteThrown(const std::string& function) { thrown_.push_back(function); }
  bool failed(const std::string& name) const;

 private:
  void Perform(const std::string& name, const std::function<void(Trial&)>& body);
  bool Reached(const std::string& name);  // the point to resume from lies behind

  const KitOptions& options_;
  Sink& sink_;
  bool resumed_;
  std::vector<std::string> thrown_;
  std::vector<std::string> failed_;
};

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_TRIAL_H_
