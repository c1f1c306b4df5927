// The instruction set levels that this build has kernels for, and the features each one requires.
//
// Nothing here looks at the processor: a caller compares `required` with the features that it has
// detected, and calls into a level's table only if all of them may be used.

#pragma once

#include <span>
#include <string_view>

#include "kernels/cpu/levels/kernel_table.h"

// Some programs have only some of the levels (build_kernel_check.sh, tools/first). In these, the
// tables of the other levels are null.
#if defined(TRINE_CPU_SOME_LEVELS)
#define TRINE_OF_LEVEL __attribute__((weak))
#else
#define TRINE_OF_LEVEL
#endif

namespace trine::cpu_kernels {

struct Level {
  const char* name;                       // as TRINE_CPU_ISA names it
  std::span<const char* const> required;  // features by the names of detect/
  const KernelTable* table;               // null: the level was left out of this program
  bool on_request_only;                   // BestLevel never returns it
};

// The scalar reference as a level. Its products read x itself, not the quantised rows.
extern const KernelTable kReferenceLevel;

// Returns the levels of this build's architecture, each better than the ones before it.
std::span<const Level> Levels();

// Returns the level of that name, or null if this build has none.
const Level* FindLevel(std::string_view name);

// Returns whether `usable(feature)` holds for every feature that the level requires.
template <typename Usable>
bool CanRun(const Level& level, Usable usable) {
  for (const char* feature : level.required) {
    if (!usable(feature)) return false;
  }
  return true;
}

// Returns the best level that can run, or null when not even the first can.
template <typename Usable>
const Level* BestLevel(Usable usable) {
  const Level* best = nullptr;
  for (const Level& level : Levels()) {
    if (level.table == nullptr || level.on_request_only) continue;
    if (CanRun(level, usable)) best = &level;
  }
  return best;
}

}  // namespace trine::cpu_kernels
