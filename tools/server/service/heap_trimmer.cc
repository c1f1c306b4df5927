#include "tools/server/service/heap_trimmer.h"

#include <malloc.h>

namespace trine::server {
namespace {

constexpr size_t kMuch = size_t{4} << 20;
constexpr int kMostAtTheEnd = 1 << 20;  // of a heap
// Larger allocations are mapped by themselves. Without it the limit above would make that 128 KiB.
constexpr int kLargestInHeaps = 4 << 20;
constexpr std::chrono::seconds kWhileBusy(5);  // trimming takes some milliseconds of every heap

}  // namespace

HeapTrimmer::HeapTrimmer() {
#ifdef __GLIBC__
  mallopt(M_TRIM_THRESHOLD, kMostAtTheEnd);
  mallopt(M_MMAP_THRESHOLD, kLargestInHeaps);
#endif
}

bool HeapTrimmer::Tick(bool is_idle, Clock::time_point now) {
  if (bytes_ < kMuch && !(was_busy_ && is_idle)) return false;
  if (!is_idle && now - last_ < kWhileBusy) return false;
  bytes_ = 0;
  was_busy_ = !is_idle;
  last_ = now;
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return true;
}

}  // namespace trine::server
