// Tells whether the host wants the times of ops.
#ifndef TRINE_SDK_OP_TIMES_H_
#define TRINE_SDK_OP_TIMES_H_

#include "trine/backend.h"

namespace trine::sdk {

// Returns whether the host wants op_done to be called during this run. Call it once per run.
inline bool WantsOpTimes(const trine_host& host) {
  return __atomic_load_n(host.profiling, __ATOMIC_RELAXED) != 0;
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_OP_TIMES_H_
