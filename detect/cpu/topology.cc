#include "detect/cpu/topology.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "detect/text.h"

namespace trine::detect {
namespace {

constexpr char kCpuFolder[] = "/sys/devices/system/cpu";
constexpr char kNodeFolder[] = "/sys/devices/system/node";

// Returns 12 for "cpu12" with prefix "cpu".
std::optional<int> NumberAfter(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto number = ParseU64(name.substr(prefix.size()));
  if (!number || *number >= kMaxCpus) return std::nullopt;
  return static_cast<int>(*number);
}

// Returns the online processors that have a folder. The list of online processors alone is not
// enough: a garbage "0-65535" would make the reader look for that many folders.
std::vector<int> OnlineCpus(const FileRoot& root) {
  std::vector<int> present;
  for (const std::string& name : root.List(kCpuFolder)) {
    if (const auto cpu = NumberAfter(name, "cpu")) present.push_back(*cpu);
  }
  std::sort(present.begin(), present.end());
  const auto text = root.Read(std::string(kCpuFolder) + "/online");
  const auto listed = text ? ParseCpuList(*text) : std::nullopt;
  std::vector<int> online;
  if (listed) {
    std::set_intersection(present.begin(), present.end(), listed->begin(), listed->end(),
                          std::back_inserter(online));
  }
  if (!online.empty()) return online;
  for (const int cpu : present) {
    // cpu0 often has no such file: it cannot be taken offline.
    const std::string file = std::string(kCpuFolder) + "/cpu" + std::to_string(cpu) + "/online";
    if (root.ReadU64(file) != 0u) online.push_back(cpu);
  }
  return online;
}

// Returns the online processors of a list, which must hold `self`. The result is never empty.
std::optional<std::vector<int>> ReadPeers(const FileRoot& root, const std::string& path, int self,
                                          const std::vector<int>& online) {
  const auto text = root.Read(path);
  if (!text) return std::nullopt;
  const auto listed = ParseCpuList(*text);
  if (!listed || !std::binary_search(listed->begin(), listed->end(), self)) return std::nullopt;
  std::vector<int> peers;
  std::set_intersection(listed->begin(), listed->end(), online.begin(), online.end(),
                        std::back_inserter(peers));
  return peers;
}

// Returns the threads of a processor's core, including itself.
std::optional<std::vector<int>> ReadSiblings(const FileRoot& root, int cpu,
                                             const std::vector<int>& online) {
  const std::string folder = std::string(kCpuFolder) + "/cpu" + std::to_string(cpu) + "/topology";
  auto siblings = ReadPeers(root, folder + "/core_cpus_list", cpu, online);
  if (!siblings) siblings = ReadPeers(root, folder + "/thread_siblings_list", cpu, online);
  return siblings;
}

struct CoreCount {
  std::set<uint64_t> packages;
  std::map<std::tuple<bool, uint64_t, uint64_t>, std::vector<int>> threads_of_core;
  int unplaced = 0;  // Processors whose folder says nothing about their core.
};

void CountCore(const FileRoot& root, int cpu, const std::vector<int>& online, CoreCount* count) {
  const std::string folder = std::string(kCpuFolder) + "/cpu" + std::to_string(cpu) + "/topology";
  // The kernel writes -1 where firmware names no package: all such processors count as one package.
  const uint64_t package = root.ReadU64(folder + "/physical_package_id").value_or(0);
  const auto siblings = ReadSiblings(root, cpu, online);

  // A core is identified by its first online thread: core_id repeats between dies and clusters.
  std::tuple<bool, uint64_t, uint64_t> core(false, package, static_cast<uint64_t>(cpu));
  if (siblings) {
    std::get<2>(core) = static_cast<uint64_t>(siblings->front());
  } else if (const auto id = root.ReadU64(folder + "/core_id")) {
    core = {true, package, *id};
  } else {
    ++count->unplaced;
  }
  count->packages.insert(package);
  count->threads_of_core[core].push_back(cpu);
}

bool ParseCacheType(std::string_view text, CacheType* type) {
  text = Trim(text);
  if (text == "Data") {
    *type = CacheType::kData;
  } else if (text == "Instruction") {
    *type = CacheType::kInstruction;
  } else if (text == "Unified") {
    *type = CacheType::kUnified;
  } else {
    return false;
  }
  return true;
}

// Fills level, type, size and line of one cache. Returns false without a known level and type.
bool ReadCacheShape(const FileRoot& root, const std::string& folder, CacheInfo* cache) {
  const uint64_t level = root.ReadU64(folder + "/level").value_or(0);
  if (level < 1 || level > 5) return false;
  cache->level = static_cast<int>(level);
  if (!ParseCacheType(root.Read(folder + "/type").value_or(""), &cache->type)) return false;
  cache->size_bytes = ParseBytes(root.Read(folder + "/size").value_or("")).value_or(0);
  const uint64_t line = root.ReadU64(folder + "/coherency_line_size").value_or(0);
  cache->line_bytes = line <= 4096 ? static_cast<uint32_t>(line) : 0;
  return cache->size_bytes > 0;
}

std::vector<CacheInfo> ReadCaches(const FileRoot& root, const std::vector<int>& online) {
  CacheCollector collector;
  // An instance is identified by level, type and the first online thread that uses it.
  std::set<std::tuple<int, CacheType, int>> seen;
  for (const int cpu : online) {
    const std::string folder = std::string(kCpuFolder) + "/cpu" + std::to_string(cpu) + "/cache";
    for (const std::string& name : root.List(folder)) {
      CacheInfo cache;
      const std::string index = folder + "/" + name;
      if (!NumberAfter(name, "index") || !ReadCacheShape(root, index, &cache)) continue;
      auto peers = ReadPeers(root, index + "/shared_cpu_list", cpu, online);
      if (!peers) peers = std::vector<int>{cpu};
      if (!seen.insert({cache.level, cache.type, peers->front()}).second) continue;
      cache.shared_by_threads = static_cast<int>(peers->size());
      collector.Add(cache);
    }
  }
  return collector.Take();
}

std::vector<NumaNode> ReadNodes(const FileRoot& root, const std::vector<int>& online) {
  std::vector<NumaNode> nodes;
  for (const std::string& name : root.List(kNodeFolder)) {
    const auto id = NumberAfter(name, "node");
    if (!id) continue;
    const std::string folder = std::string(kNodeFolder) + "/" + name;
    const auto cpulist = root.Read(folder + "/cpulist");
    const auto meminfo = root.Read(folder + "/meminfo");
    if (!cpulist && !meminfo) continue;
    NumaNode node;
    node.id = *id;
    if (const auto cpus = ParseCpuList(cpulist.value_or(""))) {
      std::set_intersection(cpus->begin(), cpus->end(), online.begin(), online.end(),
                            std::back_inserter(node.cpus));
    }
    node.memory_bytes = FindKibibytes(meminfo.value_or(""), "MemTotal").value_or(0);
    nodes.push_back(std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const NumaNode& a, const NumaNode& b) { return a.id < b.id; });
  return nodes;
}

CoreCaches CachesOfCore(const FileRoot& root, int cpu, const std::vector<int>& online) {
  const std::string folder = std::string(kCpuFolder) + "/cpu" + std::to_string(cpu);
  std::map<int, std::pair<uint64_t, uint64_t>> found;  // Level -> bytes and number of threads.
  for (const std::string& name : root.List(folder + "/cache")) {
    CacheInfo cache;
    const std::string index = folder + "/cache/" + name;
    if (!NumberAfter(name, "index") || !ReadCacheShape(root, index, &cache)) continue;
    if (cache.type == CacheType::kInstruction) continue;
    const auto sharing = ReadPeers(root, index + "/shared_cpu_list", cpu, online);
    found[cache.level] = {cache.size_bytes, sharing ? sharing->size() : 0};
  }
  // If sysfs does not list a core's threads, they are the threads that share its first-level cache.
  const auto siblings = ReadSiblings(root, cpu, online);
  const uint64_t threads = std::max<uint64_t>(1, siblings ? siblings->size() : found[1].second);
  const auto part = [&](int level) {
    const auto [bytes, sharing] = found[level];
    return bytes / std::max<uint64_t>(1, sharing / threads);
  };
  return {part(1), part(2)};
}

}  // namespace

const char* CacheTypeName(CacheType type) {
  return type == CacheType::kData          ? "data"
         : type == CacheType::kInstruction ? "instruction"
                                           : "unified";
}

void CacheCollector::Add(const CacheInfo& one) {
  for (CacheInfo& known : caches_) {
    if (std::tie(known.level, known.type, known.size_bytes, known.line_bytes,
                 known.shared_by_threads) ==
        std::tie(one.level, one.type, one.size_bytes, one.line_bytes, one.shared_by_threads)) {
      ++known.instances;
      return;
    }
  }
  caches_.push_back(one);
  caches_.back().instances = 1;
}

std::vector<CacheInfo> CacheCollector::Take() {
  std::sort(caches_.begin(), caches_.end(), [](const CacheInfo& a, const CacheInfo& b) {
    return std::tie(a.level, a.type, b.size_bytes, a.shared_by_threads, a.line_bytes) <
           std::tie(b.level, b.type, a.size_bytes, b.shared_by_threads, b.line_bytes);
  });
  return std::exchange(caches_, {});
}

Topology ReadTopology(const FileRoot& root, Notes* notes) {
  Topology topology;
  topology.cpus = OnlineCpus(root);
  if (topology.cpus.empty()) {
    AddNote(notes, "topology: no processors are listed under /sys/devices/system/cpu");
    return topology;
  }
  topology.source = "sysfs";
  CoreCount count;
  for (const int cpu : topology.cpus) CountCore(root, cpu, topology.cpus, &count);
  topology.packages = static_cast<int>(count.packages.size());
  topology.cores = static_cast<int>(count.threads_of_core.size());
  topology.threads = static_cast<int>(topology.cpus.size());
  for (const auto& [core, threads] : count.threads_of_core) {
    topology.threads_per_core =
        std::max(topology.threads_per_core, static_cast<int>(threads.size()));
    topology.core_cpus.push_back(threads);
  }
  if (count.unplaced > 0) {
    AddNote(notes, "topology: " + std::to_string(count.unplaced) + " of " +
                       std::to_string(topology.threads) +
                       " processors name no core; each is counted as one");
  }
  topology.caches = ReadCaches(root, topology.cpus);
  if (topology.caches.empty()) AddNote(notes, "topology: sysfs describes no caches");
  topology.numa_nodes = ReadNodes(root, topology.cpus);
  return topology;
}

CoreCaches ReadCoreCaches(const FileRoot& root) {
  const std::vector<int> online = OnlineCpus(root);
  if (online.empty()) return {};
  // Cores of one kind have consecutive numbers, so the first and the last show both kinds.
  const CoreCaches first = CachesOfCore(root, online.front(), online);
  const CoreCaches last = CachesOfCore(root, online.back(), online);
  return {std::max(first.first_level, last.first_level),
          std::max(first.second_level, last.second_level)};
}

}  // namespace trine::detect
