// Reads the topology: packages, cores, hardware threads, caches and NUMA nodes.
//
// Two readers fill the same structure: hwloc (the running machine, when built with it) and this
// project's reader of /sys/devices/system (fake roots, and builds without hwloc). Both count all
// online processors, even if this process may not run on them; CpuInfo::usable_cpus lists those on
// which it may.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detect/file_root.h"

namespace trine::detect {

enum class CacheType { kUnified, kData, kInstruction };

// Returns "unified", "data" or "instruction".
const char* CacheTypeName(CacheType type);

// All caches of one shape. A hybrid processor has several shapes at one level.
struct CacheInfo {
  int level = 0;
  CacheType type = CacheType::kUnified;
  uint64_t size_bytes = 0;    // The size of one instance.
  uint32_t line_bytes = 0;    // 0: unknown.
  int instances = 0;          // The number of such caches in the machine.
  int shared_by_threads = 0;  // Online threads that share one instance.

  bool operator==(const CacheInfo&) const = default;
};

struct NumaNode {
  int id = 0;
  std::vector<int> cpus;      // Online processors; empty for a memory-only node.
  uint64_t memory_bytes = 0;  // 0: unknown.

  bool operator==(const NumaNode&) const = default;
};

// A count of 0 means "not known".
struct Topology {
  std::vector<int> cpus;  // Online processors, ascending.
  int packages = 0;
  int cores = 0;
  int threads = 0;
  int threads_per_core = 0;                 // Threads of the widest core: above 1 when SMT is on.
  std::vector<std::vector<int>> core_cpus;  // Online processors of each core; empty when not known.
  std::vector<CacheInfo> caches;            // By level, then type, then size, largest first.
  std::vector<NumaNode> numa_nodes;         // By id; empty when the kernel has no NUMA support.
  std::string source;                       // "hwloc", "sysfs", "cpuinfo", ...
};

// Reads the /sys/devices/system of a root. Missing values stay 0 and are noted.
Topology ReadTopology(const FileRoot& root, Notes* notes);

// The data caches of one core, in bytes; of a cache that cores share, the core's part. 0: not
// known.
struct CoreCaches {
  uint64_t first_level = 0;
  uint64_t second_level = 0;

  bool operator==(const CoreCaches&) const = default;
};

// Returns the caches of a core that does most of the work. Takes for each level the larger value of
// the first and the last online core, because a processor may have small cores too. Reads only a
// few small files of a root, unlike ReadTopology.
CoreCaches ReadCoreCaches(const FileRoot& root);

// Asks hwloc about the running machine. Returns nullopt in a build without hwloc or if hwloc fails.
std::optional<Topology> HwlocTopology(Notes* notes);

// Counts caches by their shape, for both readers.
class CacheCollector {
 public:
  void Add(const CacheInfo& one);
  // Returns one entry per shape, in the order of Topology::caches.
  std::vector<CacheInfo> Take();

 private:
  std::vector<CacheInfo> caches_;
};

}  // namespace trine::detect
