// Ops that are one run of a shader over whole tensors, and what attributes ops may have.
#ifndef TRINE_BACKENDS_VULKAN_SIMPLE_RUNS_H_
#define TRINE_BACKENDS_VULKAN_SIMPLE_RUNS_H_

#include <string>

#include "backends/vulkan/op_operands.h"
#include "kernels/reference/ops.h"

namespace trine::vulkan {

// Of any op but products, gathers, norms and attention.
KernelRun SimpleRun(const RunChoices& choices, const Operands& operands);

reference::GluParams GluParamsOf(const sdk::Op& op);
reference::RopeMode RopeModeOf(const sdk::Op& op);

// "" or which attribute of an op is one that only a newer host knows.
std::string WhyNotAttributes(const sdk::Op& op);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_SIMPLE_RUNS_H_
