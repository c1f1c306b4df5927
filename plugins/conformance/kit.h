// The conformance kit: tests a plugin against every rule of trine/backend.h, check by check.
//
// RunKit calls the plugin in the calling process, where a plugin under test may crash, hang or
// exit. So programs use CheckPlugin (check.h), which runs the kit in a child.
#pragma once

#include <cstdint>
#include <string>

#include "trine/backend.h"

namespace trine::conformance {

enum class Outcome { kPass, kFail, kSkip };

// The result of one check, named "section/name".
struct Finding {
  std::string check;
  Outcome outcome = Outcome::kPass;
  std::string detail;  // why it failed or was skipped, or a note
  double seconds = 0;
};

// Receives the beginning and the end of each check, so that a crash can be ascribed to its check.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void Begin(const std::string& check) = 0;
  virtual void End(const Finding& finding) = 0;
  // Called now and then during a long check, as a sign that the plugin is slow and does not hang.
  virtual void Alive() {}
};

// Returns "pass", "fail" or "skip".
inline const char* OutcomeName(Outcome outcome) {
  return outcome == Outcome::kPass ? "pass" : outcome == Outcome::kFail ? "fail" : "skip";
}
// Returns kFail for an unknown name.
inline Outcome OutcomeOf(const std::string& name) {
  return name == "pass" ? Outcome::kPass : name == "skip" ? Outcome::kSkip : Outcome::kFail;
}

struct KitOptions {
  int create_destroy_cycles = 1000;
  uint32_t workers = 5;  // the largest team; smaller ones must give the same results
  uint64_t seed = 1;
  // Run only checks whose names contain one of these texts, which commas separate; "" = all. A text
  // after a '-' leaves out the checks whose names contain it.
  std::string filter;
  std::string options;       // the plugin's options, passed to its open
  std::string resume_after;  // skip every check up to and including this one; "" = none
  bool long_run = false;     // no time limits on the cycles, more random cases
  // Do not fail if there is no device. For GPU plugins on machines without the GPU.
  bool allow_no_device = false;
};

// Runs all checks on the plugin and reports them to the sink.
void RunKit(trine_plugin_query_fn query, const KitOptions& options, Sink& sink);

}  // namespace trine::conformance
