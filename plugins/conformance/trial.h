// Runs one check: makes calls into the plugin and notes failures. A check continues after a failure
// if it can. The first failure is reported in full; further failures are counted.
#pragma once

#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "plugins/conformance/kit.h"

namespace trine::conformance {

// The status of a call that threw an exception. The ABI has no such status.
inline constexpr trine_status kThrew = -1;

const char* StatusName(trine_status status);

// The result of a call that returns a status.
struct Answer {
  trine_status status = TRINE_OK;
  std::string message;  // "" when there was none

  bool Ok() const { return status == TRINE_OK; }
  std::string Text() const;  // "INTERNAL: the message"
};

// Ignores everything. For calls that belong to no check.
class QuietSink : public Sink {
 public:
  void Begin(const std::string&) override {}
  void End(const Finding&) override {}
};

// Collects the failures of one check.
class Trial {
 public:
  explicit Trial(Sink* sink) : sink_(sink) {}

  void Fail(const std::string& detail);
  // Reports this failure instead of earlier ones, because it explains them.
  void FailFirst(const std::string& cause);
  void Skip(const std::string& reason);
  void Note(const std::string& text) { note_ = text; }  // shown beside a pass
  void Alive() { sink_->Alive(); }
  bool failed() const { return failures_ != 0; }
  Finding Result(const std::string& name, double seconds) const;

  // Notes the failure `otherwise` if the condition is false. Returns the condition.
  bool Expect(bool condition, const std::string& otherwise);
  bool ExpectOk(const Answer& answer, const std::string& what);
  // Expects one of the `allowed` statuses (any failure if none is listed), with a message.
  bool ExpectRefused(const Answer& answer, const std::string& what,
                     std::initializer_list<trine_status> allowed = {});

  // Makes a call, `call(trine_error*)`, that returns a status. An exception is a failure.
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

// Runs checks one after the other and reports to the sink. Not thread-safe.
class Runner {
 public:
  Runner(const KitOptions& options, Sink& sink);

  // Runs the check unless the filter leaves it out or an earlier child has run it.
  void Run(const std::string& name, const std::function<void(Trial&)>& body);
  // Runs a check that the filter can't leave out, because without it no other check means anything.
  void RunUnfiltered(const std::string& name, const std::function<void(Trial&)>& body);
  // Notes an exception of a function that returns nothing. It fails the check in progress.
  void NoteThrown(const std::string& function) { thrown_.push_back(function); }
  bool failed(const std::string& name) const;

 private:
  void Perform(const std::string& name, const std::function<void(Trial&)>& body);
  bool Reached(const std::string& name);  // whether the check comes after `resume_after`

  const KitOptions& options_;
  Sink& sink_;
  bool resumed_;
  std::vector<std::string> thrown_;
  std::vector<std::string> failed_;
};

}  // namespace trine::conformance
