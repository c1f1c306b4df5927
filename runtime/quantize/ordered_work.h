// Does numbered jobs on several threads and passes their results on in order, on one thread. So the
// outcome does not depend on the number of threads or on their scheduling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace trine::quantize {

// A job uses one of a fixed number of slots. A slot stands for a buffer of the caller, so memory
// is bounded, however far the threads could run ahead.
using OrderedJob = std::function<absl::Status(int64_t job, size_t slot)>;

inline size_t SlotsFor(uint32_t threads) { return 2 * static_cast<size_t>(threads) + 2; }

// Calls produce(job, slot) for jobs 0 to `jobs` - 1 on up to `threads` threads. At the same time
// calls consume(job, slot) on the calling thread for each finished job, in order. `slot` is below
// SlotsFor(threads). Returns the first error in the order of the jobs; consumes nothing after it,
// and ends all threads. A job that runs out of memory (std::bad_alloc) gives RESOURCE_EXHAUSTED. If
// the system refuses threads, the calling thread does the work.
absl::Status RunInOrder(int64_t jobs, uint32_t threads, const OrderedJob& produce,
                        const OrderedJob& consume);

}  // namespace trine::quantize
