// The instruction set levels this build has kernels for, and what each asks of the processor.
//
// Nothing here looks at the processor: a caller matches `required` with the features it has
// detected, and calls into a level's table only when all of them may be used.

#ifndef TRINE_KERNELS_CPU_LEVELS_H_
#define TRINE_KERNELS_CPU_LEVELS_H_

#include <span>
#include <string_view>

#include "kernels/cpu/kernel_table.h"

// A program with some levels alone (build_kernel_check.sh): what belongs to the others is then
// null.
#if defined(TRINE_CPU_SOME_LEVELS)
#define TRINE_OF_LEVEL __attribute__((weak))
#else
#define TRINE_OF_LEVEL
#endif

namespace trine::cpu_kernels {

struct Level {
  const char* name;                       // as TRINE_CPU_ISA names it
  std::span<const char* const> required;  // features by the names of detect/
  const KernelTable* table;
  bool on_request_only;  // never the answer to "which is best"
};

// Reads x itself where other levels read its quantised rows.
extern const KernelTable kReferenceLevel;

// Of this build's architecture, each better than the ones before it.
std::span<const Level> Levels();

// Null when this build has no such level.
const Level* FindLevel(std::string_view name);

// Whether `usable(feature)` holds for all that the level requires.
template <typename Usable>
bool CanRun(const Level& level, Usable usable) {
  for (const char* feature : level.required) {
    if (!usable(feature)) return false;
  }
  return true;
}

// The best level that can run, or null when not even the first can.
template <typename Usable>
const Level* BestLevel(Usable usable) {
  const Level* best = nullptr;
  for (const Level& level : Levels()) {
    if (!level.on_request_only && CanRun(level, usable)) best = &level;
  }
  return best;
}

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_LEVELS_H_
