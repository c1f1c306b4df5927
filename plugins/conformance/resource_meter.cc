#include "plugins/conformance/resource_meter.h"

#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace trine::conformance {
namespace {

// Growth of one window up to this is the allocator's or a driver's own business.
struct Noise {
  int64_t at_all;
  int64_t per_cycle;
};
constexpr Noise kHandles{2, 0};
// Less than the allocator's smallest block a cycle is no leak of the cycle's: drivers keep lists of
// what was run, which grow by a few kilobytes now and then.
constexpr Noise kHeap{4 << 10, 32};
constexpr Noise kSanitizedHeap{4 << 10, 16};
constexpr Noise kResident{4 << 20, 0};
constexpr Noise kMapped{16 << 20, 0};
// Of both windows together: others may use the device, too.
constexpr Noise kDevice{64 << 20, 4 << 10};

int64_t CountEntries(const char* folder) {
  DIR* dir = opendir(folder);
  if (dir == nullptr) return errno == EMFILE ? -1 : 0;
  int64_t count = 0;
  while (const dirent* entry = readdir(dir)) count += entry->d_name[0] != '.';
  closedir(dir);
  return count;
}

void MeasurePages(Resources* r) {
  long long total = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lld %lld", &total, &resident) != 2) total = resident = 0;
    std::fclose(file);
  }
  r->mapped_bytes = total * sysconf(_SC_PAGESIZE);
  r->resident_bytes = resident * sysconf(_SC_PAGESIZE);
}

// A sanitizer has an allocator of its own, keeps freed memory for a while, and knows.
using AllocatedFn = size_t (*)();
AllocatedFn SanitizerCount() {
  return reinterpret_cast<AllocatedFn>(
      dlsym(RTLD_DEFAULT, "__sanitizer_get_current_allocated_bytes"));
}

int64_t HeapBytes() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
#else
  return 0;  // the pages must do
#endif
}

// What a cycle of the slower window costs, or 0 when either window is within the noise.
int64_t PerCycle(const Windows& w, int64_t Resources::*member, const Noise& noise) {
  const auto cost = [&](const Resources& from, const Resources& to, int cycles) -> int64_t {
    const int64_t grown = to.*member - from.*member;
    if (grown <= noise.at_all || grown < noise.per_cycle * cycles) return 0;
    return std::max<int64_t>(grown / std::max(cycles, 1), 1);
  };
  return std::min(cost(w.start, w.middle, w.first_cycles), cost(w.middle, w.end, w.second_cycles));
}

}  // namespace

Resources Measure() {
  Resources r;
  if (const AllocatedFn allocated = SanitizerCount()) {
    r.heap_bytes = static_cast<int64_t>(allocated());
  } else {
    r.heap_bytes = HeapBytes();
    MeasurePages(&r);
  }
  r.descriptors = CountEntries("/proc/self/fd");
  r.threads = CountEntries("/proc/self/task");
  return r;
}

std::string DescribeHandleGrowth(const Windows& w) {
  const int cycles = w.first_cycles + w.second_cycles;
  for (const Resources* r : {&w.start, &w.middle, &w.end}) {
    if (r->descriptors < 0) return "leaks file descriptors: none is left";
  }
  if (PerCycle(w, &Resources::descriptors, kHandles) != 0) {
    return absl::StrCat("leaks file descriptors: ", w.end.descriptors - w.start.descriptors, " in ",
                        cycles, " cycles");
  }
  if (PerCycle(w, &Resources::threads, kHandles) != 0) {
    return absl::StrCat("leaks threads: ", w.end.threads - w.start.threads, " in ", cycles,
                        " cycles");
  }
  return "";
}

std::string DescribeMemoryGrowth(const Windows& w) {
  const int cycles = w.first_cycles + w.second_cycles;
  // Heap first: it says more than the pages it lies in.
  if (const int64_t heap = PerCycle(w, &Resources::heap_bytes,
                                    SanitizerCount() != nullptr ? kSanitizedHeap : kHeap)) {
    return absl::StrCat("leaks about ", heap, " bytes of heap per cycle");
  }
  for (const auto& [member, noise] : {std::pair(&Resources::resident_bytes, kResident),
                                      std::pair(&Resources::mapped_bytes, kMapped)}) {
    if (const int64_t memory = PerCycle(w, member, noise)) {
      return absl::StrCat("leaks about ", memory, " bytes of memory per cycle");
    }
  }
  const int64_t device = w.end.device_bytes - w.start.device_bytes;
  if (device > kDevice.at_all + kDevice.per_cycle * cycles) {
    return absl::StrCat("leaks about ", device / std::max(cycles, 1),
                        " bytes of the device's memory per cycle");
  }
  return "";
}

}  // namespace trine::conformance
