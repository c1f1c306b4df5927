#include "detect/memory.h"

#include <algorithm>
#include <limits>

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
    // Kernels before 3.14: free plus droppable memory, which is a little too much.
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

// The file names and the memory.stat key of droppable page cache for one cgroup version.
struct MemoryFiles {
  const char* limit;
  const char* usage;
  const char* inactive;
};
constexpr MemoryFiles kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                "total_inactive_file"};
constexpr MemoryFiles kVersion2{"/memory.max", "/memory.current", "inactive_file"};

// Returns how many bytes are left under one limit. Inactive file pages count as free: the kernel
// drops them before it kills a process.
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
    // Without a limit, version 2 has "max", which is not a number, and version 1 a huge number.
    const auto limit = root.ReadU64(folder.files + files.limit);
    if (!limit) continue;
    const bool unlimited = memory->physical_bytes > 0 ? *limit >= memory->physical_bytes
                                                      : *limit >= (uint64_t{1} << 62);
    if (unlimited) continue;
    // A wider limit can bind before the tightest one: busy neighbours may share it.
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

// The most levels of a hierarchy that are read; systemd and Kubernetes together have fewer than
// ten.
constexpr size_t kMaxDepth = 64;

std::vector<CgroupFolder> WithAncestors(const std::string& mount, std::string_view path) {
  std::vector<CgroupFolder> folders{{"/", mount}};
  std::string inside;
  for (std::string_view part : Split(path, '/')) {
    // A process outside its cgroup namespace sees "/../..", which means nothing below the mount.
    if (part == "." || part == ".." || folders.size() >= kMaxDepth) break;
    inside += "/" + std::string(part);
    folders.push_back({inside, mount + inside});
  }
  std::reverse(folders.begin(), folders.end());
  return folders;
}

bool HasController(std::string_view list, std::string_view controller) {
  const auto names = Split(list, ',');
  return std::find(names.begin(), names.end(), controller) != names.end();
}

std::optional<double> Quota(std::optional<uint64_t> quota, std::optional<uint64_t> period) {
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
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

Cgroup FindCgroup(const FileRoot& root, std::string_view controller) {
  Cgroup found;
  const auto text = root.Read("/proc/self/cgroup");
  if (!text) return found;
  for (std::string_view line : Split(*text, '\n')) {
    // "hierarchy:controllers:path"; version 2 is hierarchy 0 with no controllers.
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (HasController(controllers, controller)) {
      std::string mount = "/sys/fs/cgroup/" + std::string(controllers);
      if (root.List(mount).empty()) mount = "/sys/fs/cgroup/" + std::string(controller);
      found.version = 1;
      found.folders = WithAncestors(mount, path);
      return found;
    }
    if (line.substr(0, first) == "0" && controllers.empty()) {
      const bool hybrid = !root.List("/sys/fs/cgroup/unified").empty();
      found.version = 2;
      found.folders = WithAncestors(hybrid ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup", path);
    }
  }
  return found;
}

std::optional<double> ReadCpuQuota(const FileRoot& root) {
  const Cgroup cgroup = FindCgroup(root, "cpu");
  std::optional<double> tightest;
  for (const CgroupFolder& folder : cgroup.folders) {
    std::optional<double> quota;
    if (cgroup.version == 1) {
      // Without a limit the file holds -1, for which ReadU64 returns no value.
      quota = Quota(root.ReadU64(folder.files + "/cpu.cfs_quota_us"),
                    root.ReadU64(folder.files + "/cpu.cfs_period_us"));
    } else if (const auto text = root.Read(folder.files + "/cpu.max")) {
      const auto words = Words(*text);  // "max 100000" or "50000 100000".
      if (words.size() == 2) quota = Quota(ParseU64(words[0]), ParseU64(words[1]));
    }
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
  }
  return tightest;
}

}  // namespace trine::detect
