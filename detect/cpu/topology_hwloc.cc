// Reads the topology of the running machine from hwloc.

#include "detect/cpu/topology.h"

#ifdef TRINE_HAVE_HWLOC

#include <hwloc.h>

#include <algorithm>
#include <memory>

namespace trine::detect {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using TopologyPtr = std::unique_ptr<hwloc_topology, TopologyDeleter>;

TopologyPtr Load(Notes* notes) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    AddNote(notes, "topology: hwloc could not start");
    return nullptr;
  }
  TopologyPtr topology(raw);
  // Describes the whole machine, including what a cpuset forbids: usable_cpus leaves that out.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_icache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(raw) != 0) {
    AddNote(notes, "topology: hwloc could not read this machine");
    return nullptr;
  }
  // HWLOC_XMLFILE and similar variables make hwloc describe another machine.
  if (!hwloc_topology_is_thissystem(raw)) {
    AddNote(notes, "topology: hwloc was told to describe another machine; not used");
    return nullptr;
  }
  return topology;
}

std::vector<int> Cpus(hwloc_const_cpuset_t set) {
  std::vector<int> cpus;
  // A set may be infinite ("all processors"): its weight is then -1, and the loop would not end.
  if (set == nullptr || hwloc_bitmap_weight(set) < 0) return cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) {
    cpus.push_back(cpu);
  }
  return cpus;
}

CacheInfo ToCache(hwloc_obj_t object) {
  const auto& attributes = object->attr->cache;
  CacheInfo cache;
  cache.level = static_cast<int>(attributes.depth);
  cache.type = attributes.type == HWLOC_OBJ_CACHE_DATA          ? CacheType::kData
               : attributes.type == HWLOC_OBJ_CACHE_INSTRUCTION ? CacheType::kInstruction
                                                                : CacheType::kUnified;
  cache.size_bytes = attributes.size;
  cache.line_bytes = attributes.linesize;
  cache.shared_by_threads = std::max(1, hwloc_bitmap_weight(object->cpuset));
  return cache;
}

template <typename Visit>
void ForEach(hwloc_topology_t topology, hwloc_obj_type_t type, Visit visit) {
  for (hwloc_obj_t object = hwloc_get_next_obj_by_type(topology, type, nullptr); object != nullptr;
       object = hwloc_get_next_obj_by_type(topology, type, object)) {
    visit(object);
  }
}

}  // namespace

std::optional<Topology> HwlocTopology(Notes* notes) {
  const TopologyPtr loaded = Load(notes);
  if (loaded == nullptr) return std::nullopt;
  Topology topology;
  topology.source = "hwloc";
  ForEach(loaded.get(), HWLOC_OBJ_PU,
          [&](hwloc_obj_t object) { topology.cpus.push_back(static_cast<int>(object->os_index)); });
  std::sort(topology.cpus.begin(), topology.cpus.end());
  topology.threads = static_cast<int>(topology.cpus.size());
  ForEach(loaded.get(), HWLOC_OBJ_PACKAGE, [&](hwloc_obj_t) { ++topology.packages; });
  ForEach(loaded.get(), HWLOC_OBJ_CORE, [&](hwloc_obj_t object) {
    ++topology.cores;
    topology.core_cpus.push_back(Cpus(object->cpuset));
    topology.threads_per_core =
        std::max(topology.threads_per_core, hwloc_bitmap_weight(object->cpuset));
  });
  CacheCollector collector;
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE,
        HWLOC_OBJ_L5CACHE, HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2ICACHE, HWLOC_OBJ_L3ICACHE}) {
    ForEach(loaded.get(), type, [&](hwloc_obj_t object) {
      // hwloc also lists caches of unknown size, which are of no use here.
      if (object->attr->cache.size > 0) collector.Add(ToCache(object));
    });
  }
  topology.caches = collector.Take();
  ForEach(loaded.get(), HWLOC_OBJ_NUMANODE, [&](hwloc_obj_t object) {
    NumaNode node;
    node.id = static_cast<int>(object->os_index);
    node.cpus = Cpus(object->cpuset);
    node.memory_bytes = object->attr->numanode.local_memory;
    topology.numa_nodes.push_back(std::move(node));
  });
  std::sort(topology.numa_nodes.begin(), topology.numa_nodes.end(),
            [](const NumaNode& a, const NumaNode& b) { return a.id < b.id; });
  if (topology.threads == 0) return std::nullopt;
  return topology;
}

}  // namespace trine::detect

#else

namespace trine::detect {

std::optional<Topology> HwlocTopology(Notes*) { return std::nullopt; }

}  // namespace trine::detect

#endif  // TRINE_HAVE_HWLOC
