// Whether the host wants to know where the time of runs goes.
#ifndef TRINE_SDK_OP_TIMES_H_
#define TRINE_SDK_OP_TIMES_H_

#include "trine/backend.h"

namespace trine::sdk {

// Once per run; if so, the run calls op_done.
inline bool WantsOpTimes(const trine_host& host) {
  return __atomic_load_n(host.profiling, __ATOMIC_RELAXED) != 0;
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_OP_TIMES_H_
