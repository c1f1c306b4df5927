// Reads how much memory the machine has, and how much of it this process may use.
//
// A control group's limit counts as if the machine were that small: a planner that believed the
// physical size inside a container would be killed by the kernel when it used it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detect/file_root.h"

namespace trine::detect {

// All sizes in bytes; 0 means unknown unless a member says otherwise.
struct MemoryInfo {
  uint64_t physical_bytes = 0;   // The machine's own memory.
  uint64_t total_bytes = 0;      // The smaller of `physical_bytes` and `limit_bytes`.
  uint64_t available_bytes = 0;  // What can be allocated without swapping or being killed.
  uint64_t limit_bytes = 0;      // The tightest cgroup limit; 0: none below the physical size.
  std::string limit_source;      // "cgroup v2 /user.slice: 4.0 GiB"; "" without a limit.
  uint64_t swap_total_bytes = 0;
  uint64_t swap_free_bytes = 0;
};

// Reads /proc/meminfo and the memory cgroup of a root.
MemoryInfo ReadMemory(const FileRoot& root, Notes* notes);

// One folder with the limits of a control group.
struct CgroupFolder {
  std::string path;   // "/user.slice"; "/" for the mounted root.
  std::string files;  // The folder of its files: "/sys/fs/cgroup/user.slice".
};

// The folders with the limits of this process's control group. The limits of all ancestors hold
// too, so callers must read every folder. Inside a container the path in /proc/self/cgroup may be a
// path of the host that does not exist; then the mounted root, always last in the list, has the
// limits.
struct Cgroup {
  int version = 0;                    // 1 or 2; 0 when there is none.
  std::vector<CgroupFolder> folders;  // This process's own folder first, then its ancestors.
};

// Returns the control group of this process for `controller`, which is "memory" or "cpu". Takes the
// version-1 hierarchy if it has the controller: the kernel puts a controller in only one of them.
Cgroup FindCgroup(const FileRoot& root, std::string_view controller);

// Returns how many processors' worth of time the cpu controller allows: the tightest quota of all
// ancestors. Returns nullopt if there is no quota.
std::optional<double> ReadCpuQuota(const FileRoot& root);

}  // namespace trine::detect
