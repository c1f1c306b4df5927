// Reads how much memory the machine has, and how much of it this process may use.
//
// The limit of a control group (cgroup) counts as if the machine had no more memory than that. A
// container has such a limit: if a planner used the machine's physical size there, the kernel would
// kill the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detect/file_root.h"

namespace trine::detect {

// Sizes are in bytes. A size that could not be read is 0.
struct MemoryInfo {
  uint64_t physical_bytes = 0;  // The machine's own memory; 0: unknown.
  uint64_t total_bytes = 0;     // `limit_bytes` if there is a limit, else `physical_bytes`.
  // What can be allocated without swapping or being killed. Also 0 if nothing is left.
  uint64_t available_bytes = 0;
  uint64_t limit_bytes = 0;  // The tightest cgroup limit below the physical size; 0: none.
  // Names the cgroup with that limit, for people: "cgroup v2 /user.slice: 4.0 GiB". "": no limit.
  std::string limit_source;
  uint64_t swap_total_bytes = 0;  // The machine's swap; also 0 if it has none.
  uint64_t swap_free_bytes = 0;   // Also 0 if none is left.
};

// Reads /proc/meminfo, and the limits of the memory cgroup that /proc/self/cgroup names, from the
// files of a root. Never fails: adds a note for what is missing in /proc/meminfo, and takes a
// cgroup that can't be read for one without a limit. REQUIRES: `notes` is not null.
MemoryInfo ReadMemory(const FileRoot& root, Notes* notes);

// A control group, and the folder with the files that have its limits.
struct CgroupFolder {
  std::string path;   // The group: "/user.slice"; "/" is the group that is mounted.
  std::string files;  // Its folder, within the root: "/sys/fs/cgroup/user.slice".
};

// The control group of this process, and its ancestors. The limits of all of them hold for the
// process, so callers read every folder. A folder may be missing: inside a container,
// /proc/self/cgroup may name a group of the host. Then the mounted group, which is always the last,
// has the limits.
struct Cgroup {
  int version = 0;                    // 1 or 2; 0: the process has none.
  std::vector<CgroupFolder> folders;  // This process's own folder first, then its ancestors.
};

// Returns the control group of this process (/proc/self/cgroup of the root) for a controller,
// "memory" or "cpu". Versions 1 and 2 may be mounted side by side, but the kernel puts a controller
// in only one of them. So returns the version-1 group if version 1 has the controller, else the
// version-2 group.
Cgroup FindCgroup(const FileRoot& root, std::string_view controller);

// Returns how many processors' worth of time this process may use: the tightest quota of its own
// cpu cgroup and of its ancestors. Returns nullopt if none of them has a quota that can be read.
std::optional<double> ReadCpuQuota(const FileRoot& root);

}  // namespace trine::detect
