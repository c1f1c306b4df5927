// Whether the host wants to know where the time of runs goes, and is young enough to be told.
#ifndef TRINE_SDK_OP_TIMES_H_
#define TRINE_SDK_OP_TIMES_H_

#include <cstddef>
#include <cstdint>

#include "trine/backend.h"

namespace trine::sdk {

// Once per run; if so, the run calls op_done.
inline bool WantsOpTimes(const trine_host& host) {
  constexpr size_t kNeeded = offsetof(trine_host, op_done) + sizeof(host.op_done);
  return host.struct_size >= kNeeded && __atomic_load_n(host.profiling, __ATOMIC_RELAXED) != 0;
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_OP_TIMES_H_
