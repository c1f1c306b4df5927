// MemoryInfo: how much memory the machine has, and how much of it this process may have.
//
// A control group's limit counts as if the machine were that small: a planner that believes the
// physical size inside a container is killed by the kernel when it uses it.

#ifndef TRINE_DETECT_MEMORY_H_
#define TRINE_DETECT_MEMORY_H_

#include <cstdint>
#include <string>

#include "detect/file_root.h"
#include "detect/notes.h"

namespace trine::detect {

// All sizes in bytes; 0 means unknown, except where said.
struct MemoryInfo {
  uint64_t physical_bytes = 0;   // What the machine has.
  uint64_t total_bytes = 0;      // The smaller of that and the tightest cgroup limit.
  uint64_t available_bytes = 0;  // Can be allocated now without swapping or being killed.
  uint64_t limit_bytes = 0;      // The tightest cgroup limit; 0: none below the physical size.
  std::string limit_source;      // "cgroup v2 /user.slice: 4.0 GiB"; "" without a limit.
  uint64_t swap_total_bytes = 0;
  uint64_t swap_free_bytes = 0;
};

// From /proc/meminfo and the memory cgroup of any root.
MemoryInfo ReadMemory(const FileRoot& root, Notes* notes);

}  // namespace trine::detect

#endif  // TRINE_DETECT_MEMORY_H_
