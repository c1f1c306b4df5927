// Topology: packages, cores, hardware threads, caches and NUMA nodes.
//
// Two readers fill the same structure: hwloc (the running machine, when built with it) and our own
// reader of /sys/devices/system (fake roots, and builds without hwloc). Both count what is online,
// whether this process may run there or not; CpuInfo::usable_cpus says where it may.

#ifndef TRINE_DETECT_TOPOLOGY_H_
#define TRINE_DETECT_TOPOLOGY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detect/file_root.h"
#include "detect/notes.h"

namespace trine::detect {

enum class CacheType { kUnified, kData, kInstruction };

// "unified", "data", "instruction".
const char* CacheTypeName(CacheType type);

// All caches of one shape. Hybrid processors have several shapes at one level.
struct CacheInfo {
  int level = 0;
  CacheType type = CacheType::kUnified;
  uint64_t size_bytes = 0;    // Of one instance.
  uint32_t line_bytes = 0;    // 0: unknown.
  int instances = 0;          // How many of them the machine has.
  int shared_by_threads = 0;  // Online threads that share one instance.

  bool operator==(const CacheInfo&) const = default;
};

struct NumaNode {
  int id = 0;
  std::vector<int> cpus;      // Online ones; empty for a memory-only node.
  uint64_t memory_bytes = 0;  // 0: unknown.

  bool operator==(const NumaNode&) const = default;
};

// Zero counts mean "not known".
struct Topology {
  std::vector<int> cpus;  // Online, ascending.
  int packages = 0;
  int cores = 0;
  int threads = 0;
  int threads_per_core = 0;                 // Of the widest core: above 1 means SMT is on.
  std::vector<std::vector<int>> core_cpus;  // Online, of each core; empty when not known.
  std::vector<CacheInfo> caches;            // By level, then type, then size, largest first.
  std::vector<NumaNode> numa_nodes;         // By id; empty when the kernel has no NUMA support.
  std::string source;                       // "hwloc", "sysfs", "cpuinfo", ...
};

// From /sys/devices/system of any root. What is missing stays zero and is noted.
Topology ReadTopology(const FileRoot& root, Notes* notes);

// What one core has of the caches that hold data, in bytes: its part of those that cores share. 0:
// not known.
struct CoreCaches {
  uint64_t first_level = 0;
  uint64_t second_level = 0;

  bool operator==(const CoreCaches&) const = default;
};

// Of the first or the last online core under /sys/devices/system of any root, what is larger: a few
// small files, where a whole topology is many. Of large cores and small ones it is the large that
// most of the work is done by.
CoreCaches ReadCoreCaches(const FileRoot& root);

// From hwloc, for the running machine. No value in a build without hwloc or when hwloc fails.
std::optional<Topology> HwlocTopology(Notes* notes);

// Collects single caches into shapes; shared by the two readers.
class CacheCollector {
 public:
  void Add(const CacheInfo& one);
  std::vector<CacheInfo> Take();

 private:
  std::vector<CacheInfo> caches_;
};

}  // namespace trine::detect

#endif  // TRINE_DETECT_TOPOLOGY_H_
