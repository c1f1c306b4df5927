// Work to submit with waits and signals: a plan's run, or a copy.
#ifndef TRINE_PLUGINS_CONFORMANCE_SUBMISSION_H_
#define TRINE_PLUGINS_CONFORMANCE_SUBMISSION_H_

#include <memory>
#include <string>

#include "plugins/conformance/sections.h"

namespace trine::conformance {

// Two sets of inputs go with each: the true ones, which it is made with, and the false ones. What
// came out tells which of them was read.
class Submission {
 public:
  enum class Result { kNone, kOfTrueInputs, kOfFalseInputs, kNeither };

  // Null with the failure, or why the check is skipped, noted.
  static std::unique_ptr<Submission> OfPlan(Trial& trial, Bench& bench, Session& s);
  static std::unique_ptr<Submission> OfCopy(Trial& trial, Bench& bench, Session& s);
  virtual ~Submission() = default;

  virtual const char* call() const = 0;  // "plan_run"
  // Takes waits, signals and padding of `options`.
  virtual Answer Submit(Trial& trial, const RunOptions& options) = 0;
  virtual bool WriteInputs(Trial& trial, bool true_ones) = 0;
  // Of the inputs as they are now. kNone: nothing was written.
  virtual Result Look(Trial& trial) = 0;
};

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_SUBMISSION_H_
