// Ops that are one run of a shader over whole tensors.
#ifndef TRINE_BACKENDS_VULKAN_SIMPLE_RUNS_H_
#define TRINE_BACKENDS_VULKAN_SIMPLE_RUNS_H_

#include "backends/vulkan/op_operands.h"

namespace trine::vulkan {

// Of any op but products, gathers, norms and attention.
KernelRun SimpleRun(const RunChoices& choices, const Operands& operands);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_SIMPLE_RUNS_H_
