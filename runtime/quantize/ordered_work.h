// Numbered jobs, done by several threads and handed on in order by one: the result does not depend
// on how many threads there are or how they are scheduled.
#ifndef TRINE_RUNTIME_QUANTIZE_ORDERED_WORK_H_
#define TRINE_RUNTIME_QUANTIZE_ORDERED_WORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace trine::quantize {

// A job works in one of a fixed number of slots, the caller's buffers, so that memory stays bounded
// however far the threads could run ahead.
using OrderedJob = std::function<absl::Status(int64_t job, size_t slot)>;

inline size_t SlotsFor(uint32_t threads) { return 2 * static_cast<size_t>(threads) + 2; }

// Calls produce(job, slot) for jobs 0 to `jobs` - 1 on up to `threads` threads, and consume(job,
// slot) for each, in order, on the calling thread, while others are still produced. `slot` is below
// SlotsFor(threads). Returns the first error, in the order of the jobs; nothing after it is
// consumed, and no thread is left when it returns. A job that runs out of memory (std::bad_alloc)
// is RESOURCE_EXHAUSTED. Where the system refuses threads the caller does the work.
absl::Status RunInOrder(int64_t jobs, uint32_t threads, const OrderedJob& produce,
                        const OrderedJob& consume);

}  // namespace trine::quantize

#endif  // TRINE_RUNTIME_QUANTIZE_ORDERED_WORK_H_
