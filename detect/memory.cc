#include "detect/memory.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "detect/cgroup.h"
#include "detect/text.h"

namespace trine::detect {
namespace {

uint64_t AddClamped(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

void ReadMeminfo(const FileRoot& root, MemoryInfo* memory, Notes* notes) {
  const auto text = root.Read("/proc/meminfo");
  if (!text) {
    AddNote(notes, "memory: /proc/meminfo could not be read");
    return;
  }
  memory->physical_bytes = FindKibibytes(*text, "MemTotal").value_or(0);
  if (memory->physical_bytes == 0) AddNote(notes, "memory: /proc/meminfo has no MemTotal");
  memory->swap_total_bytes = FindKibibytes(*text, "SwapTotal").value_or(0);
  memory->swap_free_bytes = FindKibibytes(*text, "SwapFree").value_or(0);
  auto available = FindKibibytes(*text, "MemAvailable");
  if (!available) {
    // Kernels before 3.14: what is free plus what can be dropped, which is a little too much.
    if (const auto free = FindKibibytes(*text, "MemFree")) {
      available = AddClamped(AddClamped(*free, FindKibibytes(*text, "Buffers").value_or(0)),
                             FindKibibytes(*text, "Cached").value_or(0));
      AddNote(notes, "memory: no MemAvailable; estimated from free, buffers and page cache");
    }
  }
  memory->available_bytes = available.value_or(0);
  if (memory->physical_bytes > 0) {
    memory->available_bytes = std::min(memory->available_bytes, memory->physical_bytes);
  }
}

// File names and the key of droppable page cache, by cgroup version.
struct MemoryFiles {
  const char* limit;
  const char* usage;
  const char* inactive;
};
constexpr MemoryFiles kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                "total_inactive_file"};
constexpr MemoryFiles kVersion2{"/memory.max", "/memory.current", "inactive_file"};

// What is left under one limit. Inactive file pages are dropped before anyone is killed.
uint64_t Left(const FileRoot& root, const CgroupFolder& folder, const MemoryFiles& files,
              uint64_t limit) {
  const uint64_t used = root.ReadU64(folder.files + files.usage).value_or(0);
  const auto stat = root.Read(folder.files + "/memory.stat");
  const uint64_t inactive = stat ? FindNumber(*stat, files.inactive).value_or(0) : 0;
  const uint64_t held = used > inactive ? used - inactive : 0;
  return limit > held ? limit - held : 0;
}

void ApplyCgroup(const FileRoot& root, MemoryInfo* memory) {
  const Cgroup cgroup = FindCgroup(root, "memory");
  const MemoryFiles& files = cgroup.version == 1 ? kVersion1 : kVersion2;
  for (const CgroupFolder& folder : cgroup.folders) {
    // No limit is "max" in version 2, not a number, and a huge number in version 1.
    const auto limit = root.ReadU64(folder.files + files.limit);
    if (!limit) continue;
    const bool unlimited = memory->physical_bytes > 0 ? *limit >= memory->physical_bytes
                                                      : *limit >= (uint64_t{1} << 62);
    if (unlimited) continue;
    // Not only the tightest limit can bind: a wider one may be shared with busy neighbours.
    const uint64_t left = Left(root, folder, files, *limit);
    const bool known = memory->physical_bytes > 0 || !memory->limit_source.empty();
    memory->available_bytes = known ? std::min(memory->available_bytes, left) : left;
    if (memory->limit_source.empty() || *limit < memory->limit_bytes) {
      memory->limit_bytes = *limit;
      memory->limit_source = "cgroup v" + std::to_string(cgroup.version) + " " +
                             CleanText(folder.path) + ": " + FormatBytes(*limit);
    }
  }
}

}  // namespace

MemoryInfo ReadMemory(const FileRoot& root, Notes* notes) {
  MemoryInfo memory;
  ReadMeminfo(root, &memory, notes);
  ApplyCgroup(root, &memory);
  memory.total_bytes = memory.physical_bytes;
  if (!memory.limit_source.empty()) {
    memory.total_bytes = memory.physical_bytes == 0
                             ? memory.limit_bytes
                             : std::min(memory.physical_bytes, memory.limit_bytes);
  }
  return memory;
}

}  // namespace trine::detect
