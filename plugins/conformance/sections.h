// The sections of the kit, in the order they run. Each is a file of checks.
#ifndef TRINE_PLUGINS_CONFORMANCE_SECTIONS_H_
#define TRINE_PLUGINS_CONFORMANCE_SECTIONS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plugins/conformance/kit.h"
#include "plugins/conformance/op_cases.h"
#include "plugins/conformance/session.h"
#include "plugins/conformance/trial.h"

namespace trine::conformance {

// One device under test and what its checks share.
class Bench {
 public:
  Bench(Runner& runner, const trine_plugin& table, const KitOptions& options, uint32_t device)
      : runner_(runner),
        table_(table),
        options_(options),
        device_(device),
        sessions_(runner, table, options, device) {}

  // Runs a check with the session of the largest team. Checks of further devices are named
  // "section/name@1".
  void Run(const std::string& name, const std::function<void(Trial&, Session&)>& body);

  // A graph the device claims, for checks that need any; skips the check when there is none. Its
  // numerics are EXACT when the claim is.
  std::optional<OpCase> Probe(Trial& trial, Session& session);

  Runner& runner() { return runner_; }
  const trine_plugin& table() const { return table_; }
  const KitOptions& options() const { return options_; }
  uint32_t device() const { return device_; }
  Sessions& sessions() { return sessions_; }

 private:
  Runner& runner_;
  const trine_plugin& table_;
  const KitOptions& options_;
  uint32_t device_;
  Sessions sessions_;
};

// What the op is claimed as in `graph`, whose numerics it sets to the better mode that is claimed.
// NO comes with `reason`.
uint32_t Claim(Trial& trial, Session& session, GraphSpec* graph, std::string* reason);

// Runs the case once and compares. Failures name the graph and the number of workers.
void RunCase(Trial& trial, Session& session, const OpCase& op_case, const PlanOptions& plan_options,
             const RunOptions& run_options);

// Returns the table to use from here on, or nothing when there is none to use.
std::optional<trine_plugin> RunLoadChecks(Runner& runner, trine_plugin_query_fn query);

// What there is to test.
struct Survey {
  Answer opened;
  std::vector<uint32_t> usable;  // devices
  std::string unusable;          // of a device that is not: why
};
Survey RunLifeCycleChecks(Runner& runner, const trine_plugin& table, const KitOptions& options);
// Says that there is no device.
void RunNoDeviceCheck(Runner& runner, const KitOptions& options, const Survey& survey);
void RunCoverageChecks(Bench& bench);
void RunCycleChecks(Bench& bench);
void RunMemoryChecks(Bench& bench);
void RunCopyChecks(Bench& bench);
void RunTimelineChecks(Bench& bench);
void RunSubmissionChecks(Bench& bench);
void RunAbiChecks(Bench& bench);
void RunGraphChecks(Bench& bench);
void RunRefusalChecks(Bench& bench);
void RunOpChecks(Bench& bench);
void RunLayoutChecks(Bench& bench);
void RunFailureChecks(Bench& bench);

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_SECTIONS_H_
