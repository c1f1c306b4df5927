// Section cycles: makes and frees everything that can be made, a thousand times; nothing may grow.
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/checks/sections.h"

namespace trine::conformance {
namespace {

// The resources that a process holds.
struct Resources {
  int64_t heap_bytes = 0;  // bytes allocated by malloc and not freed
  int64_t resident_bytes = 0;
  int64_t mapped_bytes = 0;  // address space
  int64_t descriptors = 0;   // -1: none was left to count them with
  int64_t threads = 0;
  int64_t device_bytes = 0;  // bytes in use on the device, by any process; set by the caller
};

// Two consecutive windows of cycles.
struct Windows {
  Resources start, middle, end;
  int first_cycles = 0, second_cycles = 0;
};

// Growth of a window up to these limits is put down to the allocator or a driver, not to a leak.
struct Noise {
  int64_t at_all;
  int64_t per_cycle;
};
constexpr Noise kHandles{2, 0};
// A cycle that leaks grows by at least the allocator's smallest block. Drivers keep lists of what
// was run, which grow by a few kilobytes now and then.
constexpr Noise kHeap{4 << 10, 32};
constexpr Noise kSanitizedHeap{4 << 10, 16};
constexpr Noise kResident{4 << 20, 0};
constexpr Noise kMapped{16 << 20, 0};
// A limit for both windows together, because other programs may use the device too.
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

// Returns the sanitizer's own count, because its allocator keeps freed memory for a while. Returns
// null in a build without a sanitizer.
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
  return 0;  // unknown: the pages are measured alone
#endif
}

// Returns the growth per cycle of the window that grew less, or 0 if either is within the noise.
int64_t PerCycle(const Windows& w, int64_t Resources::*member, const Noise& noise) {
  const auto cost = [&](const Resources& from, const Resources& to, int cycles) -> int64_t {
    const int64_t grown = to.*member - from.*member;
    if (grown <= noise.at_all || grown < noise.per_cycle * cycles) return 0;
    return std::max<int64_t>(grown / std::max(cycles, 1), 1);
  };
  return std::min(cost(w.start, w.middle, w.first_cycles), cost(w.middle, w.end, w.second_cycles));
}

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

// Returns "leaks file descriptors: ..." or the like when both windows have grown, else "".
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

// Returns "leaks about 4096 bytes per cycle" or the like if memory has grown in both windows, else
// "". A cache that fills up grows in one window only.
std::string DescribeMemoryGrowth(const Windows& w) {
  const int cycles = w.first_cycles + w.second_cycles;
  // Heap first, because it is more precise than the pages that contain it.
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

using Clock = std::chrono::steady_clock;

// The time after which a check ends without long_run, because opening a GPU is slow.
constexpr std::chrono::seconds kBudget{6};
constexpr int kFewest = 16;
// How often memory that seems to leak is measured again, over windows twice as long. If a cycle is
// slow, few cycles fit in a window, and caches and the allocator may still settle in the first
// windows. A leak continues in all of them.
constexpr int kMoreRounds = 2;
// The time between signs of life. Not a number of cycles, because a cycle may take over a second.
constexpr std::chrono::milliseconds kSignOfLife{100};

// Measures the process and the device. The memory of a unified device is the process's.
Resources MeasureWith(Trial& trial, Bench& bench, Session& s) {
  Resources r = Measure();
  if ((s.info().flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0) return r;
  trine_device_info info{};
  info.struct_size = sizeof(info);
  const Answer answer =
      s.Call(trial, "device_info", &trine_plugin::device_info, s.backend(), bench.device(), &info);
  if (trial.ExpectOk(answer, "device_info")) {
    r.device_bytes = static_cast<int64_t>(info.memory_total - info.memory_free);
  }
  return r;
}

// Lets caches fill up during the first half, and measures growth over two windows of the second.
void Cycle(Trial& trial, Bench& bench, Session& s, const std::function<bool()>& once) {
  const KitOptions& options = bench.options();
  const int wanted = std::max(options.create_destroy_cycles, kFewest);
  bool broken = false;
  Clock::time_point sign = Clock::now();
  const auto spend = [&](int limit, int fewest, std::chrono::duration<double> budget) {
    const auto begin = Clock::now();
    int done = 0;
    while (done < limit && !broken) {
      broken = !once();
      ++done;
      if (const auto now = Clock::now(); now - sign > kSignOfLife) {
        trial.Alive();
        sign = now;
      }
      if (!options.long_run && done >= fewest && Clock::now() - begin > budget) break;
    }
    return done;
  };
  Windows windows;
  const int first = spend(wanted / 2, kFewest / 2, kBudget / 3.0);
  windows.end = MeasureWith(trial, bench, s);
  int all = first;
  const auto next_window = [&](int times) {
    windows.start = windows.middle;
    windows.first_cycles = windows.second_cycles;
    windows.middle = windows.end;
    windows.second_cycles = spend(times * first / 2, kFewest / 4, times * kBudget / 3.0);
    windows.end = MeasureWith(trial, bench, s);
    all += windows.second_cycles;
  };
  next_window(1);
  next_window(1);
  // Descriptors and threads never settle, and further windows may use up the descriptors.
  std::string growth = DescribeHandleGrowth(windows);
  if (growth.empty()) {
    growth = DescribeMemoryGrowth(windows);
    for (int i = 0; i < kMoreRounds && !growth.empty() && !broken; ++i) {
      next_window(2);
      next_window(2);
      growth = DescribeMemoryGrowth(windows);
    }
  }
  if (broken) return;  // noted by `once`
  trial.Expect(growth.empty(), growth);
  trial.Note(absl::StrCat(
      all, " cycles", all < wanted - 3 ? absl::StrCat(" of ", wanted, ": the time was up") : ""));
}

}  // namespace

void RunCycleChecks(Bench& bench) {
  bench.Run("cycles/backends", [&](Trial& trial, Session& s) {
    Cycle(trial, bench, s, [&] {
      return Session::Open(trial, bench.runner(), bench.table(), bench.device(), 1,
                           bench.options().options) != nullptr;
    });
  });
  bench.Run("cycles/devices", [&](Trial& trial, Session& s) {
    Cycle(trial, bench, s, [&] {
      trine_device* device = nullptr;
      const Answer answer = s.Call(trial, "device_open", &trine_plugin::device_open, s.backend(),
                                   bench.device(), &device);
      if (!trial.ExpectOk(answer, "device_open, the device being open already")) return false;
      s.table().device_close(device);
      return true;
    });
  });
  bench.Run("cycles/buffers", [&](Trial& trial, Session& s) {
    Cycle(trial, bench, s, [&] {
      const BufferPtr small = s.Alloc(trial, 1000), large = s.Alloc(trial, 300000);
      return small != nullptr && large != nullptr &&
             trial.ExpectOk(s.Write(trial, large.get(), 299999, "x", 1), "buffer_write");
    });
  });
  bench.Run("cycles/timelines", [&](Trial& trial, Session& s) {
    Cycle(trial, bench, s, [&] { return s.NewTimeline(trial, 0) != nullptr; });
  });
  bench.RunOnProbe("cycles/plans", [&](Trial& trial, Session& s, const OpCase& probe) {
    Cycle(trial, bench, s, [&] {
      const auto plan = DevicePlan::Create(trial, s, probe.graph, probe.images);
      return plan != nullptr && trial.ExpectOk(plan->Run(trial, probe.params), "plan_run");
    });
  });
  bench.RunOnPlan("cycles/runs", [&](Trial& trial, Session& s, const OpCase& probe, DevicePlan& p) {
    Cycle(trial, bench, s, [&] { return trial.ExpectOk(p.Run(trial, probe.params), "plan_run"); });
  });
}

}  // namespace trine::conformance
