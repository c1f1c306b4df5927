#include "plugins/conformance/resource_meter.h"

#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"

namespace trine::conformance {
namespace {

// Growth below these is the allocator's or a driver's own business.
constexpr int64_t kFewHandles = 2;
constexpr int64_t kHeapNoisePerCycle = 32;
constexpr int64_t kHeapNoise = 16 << 10;
constexpr int64_t kResidentNoise = 4 << 20;

int64_t CountEntries(const char* folder) {
  DIR* dir = opendir(folder);
  if (dir == nullptr) return 0;
  int64_t count = 0;
  while (const dirent* entry = readdir(dir)) count += entry->d_name[0] != '.';
  closedir(dir);
  return count;
}

int64_t ResidentBytes() {
  long long total = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lld %lld", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * sysconf(_SC_PAGESIZE);
}

// A sanitizer has an allocator of its own, keeps freed memory for a while, and knows.
using AllocatedFn = size_t (*)();
AllocatedFn SanitizerCount() {
  return reinterpret_cast<AllocatedFn>(
      dlsym(RTLD_DEFAULT, "__sanitizer_get_current_allocated_bytes"));
}

}  // namespace

Resources Measure() {
  Resources r;
  if (const AllocatedFn allocated = SanitizerCount()) {
    r.heap_bytes = static_cast<int64_t>(allocated());
  } else {
    const struct mallinfo2 info = mallinfo2();
    r.heap_bytes = static_cast<int64_t>(info.uordblks + info.hblkhd);
    r.resident_bytes = ResidentBytes();
  }
  r.descriptors = CountEntries("/proc/self/fd");
  r.threads = CountEntries("/proc/self/task");
  return r;
}

std::string DescribeGrowth(const Resources& from, const Resources& to, int cycles) {
  // What costs heap as well comes first: it says more.
  const int64_t descriptors = to.descriptors - from.descriptors;
  if (descriptors > kFewHandles) {
    return absl::StrCat("leaks file descriptors: ", descriptors, " in ", cycles, " cycles");
  }
  const int64_t threads = to.threads - from.threads;
  if (threads > kFewHandles) {
    return absl::StrCat("leaks threads: ", threads, " in ", cycles, " cycles");
  }
  const int64_t heap = to.heap_bytes - from.heap_bytes;
  if (heap > kHeapNoise && heap > kHeapNoisePerCycle * cycles) {
    return absl::StrCat("leaks about ", heap / cycles, " bytes of heap per cycle");
  }
  const int64_t resident = to.resident_bytes - from.resident_bytes;
  if (resident > kResidentNoise) {
    return absl::StrCat("leaks about ", resident / cycles, " bytes of memory per cycle");
  }
  return "";
}

}  // namespace trine::conformance
