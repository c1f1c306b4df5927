// Groups of ops that are one run of a shader.
#ifndef TRINE_BACKENDS_VULKAN_FUSED_RUNS_H_
#define TRINE_BACKENDS_VULKAN_FUSED_RUNS_H_

#include <string>
#include <vector>

#include "backends/common/fusion.h"
#include "backends/vulkan/op_operands.h"

namespace trine::vulkan {

// Of a group that is neither an op alone nor attention. `scratch` holds quantised activations. ""
// or why it can't be done.
std::string AddFusedRun(const RunChoices& choices, const sdk::Graph& graph,
                        const Misalignment& misaligned, const OpGroup& group, const int64_t* params,
                        OpRun::Operand scratch, std::vector<OpRun>* runs);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_FUSED_RUNS_H_
