// Which level of kernels/cpu the device runs: the best the processor has, or the one that
// TRINE_CPU_ISA names; and with what caches.
#ifndef TRINE_BACKENDS_CPU_KERNEL_CHOICE_H_
#define TRINE_BACKENDS_CPU_KERNEL_CHOICE_H_

#include <string>
#include <vector>

#include "detect/cpu.h"
#include "detect/topology.h"
#include "kernels/cpu/levels.h"
#include "kernels/cpu/tuning.h"

namespace trine::cpu {

struct KernelChoice {
  const cpu_kernels::Level* level = nullptr;  // null: none, and `reason` says why
  std::string reason;
};

// `wanted`: a level's name, or null or "" for the best.
KernelChoice ChooseKernels(const std::vector<detect::SimdFeature>& features, const char* wanted);

// What the kernels are to reckon with. A size that was not found is the kernels' own guess.
cpu_kernels::Caches CachesOf(const detect::CoreCaches& detected);

// "" when the level's kernels passed their self-test, else the operation that did not. Tried once
// per process and level.
std::string SelfTestFailure(const cpu_kernels::Level& level);

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_KERNEL_CHOICE_H_
