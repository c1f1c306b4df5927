// What a run writes for its host, and how it is spoiled.
#ifndef TRINE_PLUGINS_FAULT_OUTPUTS_H_
#define TRINE_PLUGINS_FAULT_OUTPUTS_H_

#include <cstdint>
#include <vector>

#include "plugins/fault/fault_spec.h"
#include "trine/backend.h"
#include "trine/sdk/graph.h"

namespace trine::fault {

// The tensors of IO slots that a plan's ops write, and where they lie.
class PlanOutputs {
 public:
  // `desc` with the plugin's own buffers in it, accepted by the plugin.
  static PlanOutputs Of(const trine_plan_desc& desc);

  // Overwrites what a run with these arguments has written. `seed` is of kBits.
  trine_status Spoil(const trine_plugin& table, const trine_run_args& args, Junk junk,
                     uint64_t seed, trine_error* err) const;

 private:
  sdk::Graph graph_;
  std::vector<uint32_t> tensors_;
  std::vector<trine_binding> bindings_;  // of IO slots
};

}  // namespace trine::fault

#endif  // TRINE_PLUGINS_FAULT_OUTPUTS_H_
