// The sections of the kit. Each is a file of checks; RunKit runs them in its own order.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plugins/conformance/cases/op_cases.h"
#include "plugins/conformance/kit.h"
#include "plugins/conformance/session.h"
#include "plugins/conformance/trial.h"

namespace trine::conformance {

// One device under test and the objects that its checks share.
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

  // Run a check with the graph of Probe, or with the graph and a plan of it.
  void RunOnProbe(const std::string& name,
                  const std::function<void(Trial&, Session&, const OpCase& probe)>& body);
  void RunOnPlan(
      const std::string& name,
      const std::function<void(Trial&, Session&, const OpCase& probe, DevicePlan&)>& body);

  // Returns a graph that the device supports, for checks that need any graph. Skips the check if
  // there is none. The graph's numerics are EXACT if the device supports it so, else FAST.
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

// Returns how the device supports `graph`. Sets the graph's numerics to EXACT if all ops are
// supported so, else to FAST. Sets `reason` if the answer is NO.
uint32_t Claim(Trial& trial, Session& session, GraphSpec* graph, std::string* reason);

// Runs the case, then with 1 token if it scales down, then in full again, and compares all results
// with the oracle's. FAST results of an extreme case must only be canonical. Failures name the
// graph and the number of workers.
void RunCase(Trial& trial, Session& session, const OpCase& op_case, const PlanOptions& plan_options,
             const RunOptions& run_options);

// Returns the table for all other checks, or nullopt if the plugin has none that can be used.
std::optional<trine_plugin> RunLoadChecks(Runner& runner, trine_plugin_query_fn query);

// The devices that can be tested.
struct Survey {
  Answer opened;
  std::vector<uint32_t> usable;  // device indices
  std::string unusable;          // why some other device is not usable
};
Survey RunLifeCycleChecks(Runner& runner, const trine_plugin& table, const KitOptions& options);
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
