#include "detect/cpu/cpu.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>

#include "detect/cpu/cpuinfo.h"
#include "detect/cpu/x86_features.h"
#include "detect/memory.h"
#include "detect/text.h"

namespace trine::detect {
namespace {

// Room for more than a thousand processors with two kilobytes of flags each.
constexpr size_t kCpuinfoLimit = 4 * 1024 * 1024;

std::optional<std::vector<int>> ReadCpuList(const FileRoot& root, const std::string& path) {
  const auto text = root.Read(path);
  return text ? ParseCpuList(*text) : std::nullopt;
}

std::vector<CoreKind> ReadCoreKinds(const FileRoot& root, const std::vector<int>& online) {
  std::vector<CoreKind> kinds;
  // Intel has one performance-monitoring device for each kind of core.
  constexpr const char* kIntel[][2] = {
      {"cpu_core", "performance"}, {"cpu_atom", "efficiency"}, {"cpu_lowpower", "low-power"}};
  for (const auto& [device, name] : kIntel) {
    auto cpus = ReadCpuList(root, std::string("/sys/devices/") + device + "/cpus");
    if (cpus && !cpus->empty()) kinds.push_back({name, std::move(*cpus)});
  }
  if (kinds.size() > 1) return kinds;

  // ARM has the scheduler's measure of a core's speed, 1024 for the fastest.
  std::map<uint64_t, std::vector<int>, std::greater<>> by_capacity;
  for (const int cpu : online) {
    const auto capacity =
        root.ReadU64("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpu_capacity");
    if (capacity) by_capacity[*capacity].push_back(cpu);
  }
  kinds.clear();
  if (by_capacity.size() < 2) return kinds;
  for (auto& [capacity, cpus] : by_capacity) {
    kinds.push_back({"capacity " + std::to_string(capacity), std::move(cpus)});
  }
  return kinds;
}

// Returns the online processors in Cpus_allowed_list, which already respects the cpuset.
std::vector<int> ReadUsableCpus(const FileRoot& root, const std::vector<int>& online) {
  const auto status = root.Read("/proc/self/status");
  if (!status) return online;
  for (std::string_view line : Split(*status, '\n')) {
    constexpr std::string_view kKey = "Cpus_allowed_list:";
    if (!line.starts_with(kKey)) continue;
    const auto allowed = ParseCpuList(line.substr(kKey.size()));
    if (!allowed) break;
    std::vector<int> usable;
    std::set_intersection(allowed->begin(), allowed->end(), online.begin(), online.end(),
                          std::back_inserter(usable));
    // A process always runs somewhere: an empty answer means that the file was not understood.
    return usable.empty() ? online : usable;
  }
  return online;
}

}  // namespace

bool Usable(const std::vector<SimdFeature>& features, const char* name) {
  return std::any_of(features.begin(), features.end(), [name](const SimdFeature& feature) {
    return feature.name == name && feature.usable;
  });
}

ProcessorInfo ReadProcessor(const FileRoot& root, Notes* notes) {
  ProcessorInfo processor;
  const auto text = root.Read("/proc/cpuinfo", kCpuinfoLimit);
  if (!text) {
    AddNote(notes, "cpu: /proc/cpuinfo could not be read");
    return processor;
  }
  const Cpuinfo info = ParseCpuinfo(*text);
  if (info.arch.empty()) AddNote(notes, "cpu: /proc/cpuinfo names no known architecture");
  processor.arch = info.arch;
  processor.vendor = info.vendor;
  processor.model = info.model;
  if (processor.arch == "x86-64" || processor.arch == "x86") {
    processor.features = X86FeaturesFromFlags(info.flags);
    processor.simd_level = X86SimdLevel(processor.features);
  } else if (processor.arch == "aarch64") {
    processor.features = ArmFeaturesFromFlags(info.flags);
    processor.simd_level = ArmSimdLevel(processor.features);
  }
  if (!info.arm_parts.empty()) {
    if (processor.vendor.empty()) processor.vendor = ArmVendorName(info.arm_parts.front().first);
    if (processor.model.empty()) processor.model = ArmModelName(info.arm_parts);
  }
  return processor;
}

void ReadUse(const FileRoot& root, CpuInfo* cpu) {
  Topology& topology = cpu->topology;
  if (topology.threads == 0) {
    const auto text = root.Read("/proc/cpuinfo", kCpuinfoLimit);
    const int processors = text ? ParseCpuinfo(*text).processors : 0;
    if (processors > 0) {
      // Without sysfs the processors can only be counted; Linux numbers them from 0.
      topology.threads = processors;
      for (int number = 0; number < processors; ++number) topology.cpus.push_back(number);
      topology.source = "cpuinfo";
    }
  }
  cpu->core_kinds = ReadCoreKinds(root, topology.cpus);
  cpu->usable_cpus = ReadUsableCpus(root, topology.cpus);
  cpu->cpu_quota = ReadCpuQuota(root);
}

CpuInfo ReadCpu(const FileRoot& root, Notes* notes) {
  CpuInfo cpu{ReadProcessor(root, notes), {}, {}, {}, {}};
  cpu.topology = ReadTopology(root, notes);
  ReadUse(root, &cpu);
  return cpu;
}

}  // namespace trine::detect
