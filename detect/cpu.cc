#include "detect/cpu.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>

#include "detect/arm_features.h"
#include "detect/cgroup.h"
#include "detect/cpuinfo.h"
#include "detect/text.h"
#include "detect/x86_features.h"

namespace trine::detect {
namespace {

// A thousand processors with two kilobytes of flags each, and room to spare.
constexpr size_t kCpuinfoLimit = 4 * 1024 * 1024;

std::optional<std::vector<int>> ReadCpuList(const FileRoot& root, const std::string& path) {
  const auto text = root.Read(path);
  return text ? ParseCpuList(*text) : std::nullopt;
}

std::vector<CoreKind> ReadCoreKinds(const FileRoot& root, const std::vector<int>& online) {
  std::vector<CoreKind> kinds;
  // Intel: one performance-monitoring device for each kind of core.
  constexpr const char* kIntel[][2] = {
      {"cpu_core", "performance"}, {"cpu_atom", "efficiency"}, {"cpu_lowpower", "low-power"}};
  for (const auto& [device, name] : kIntel) {
    auto cpus = ReadCpuList(root, std::string("/sys/devices/") + device + "/cpus");
    if (cpus && !cpus->empty()) kinds.push_back({name, std::move(*cpus)});
  }
  if (kinds.size() > 1) return kinds;

  // ARM: the scheduler's measure of a core, 1024 for the fastest.
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

// The kernel has already taken the cpuset into this list.
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
    // A process always runs somewhere: an empty answer is a file we did not understand.
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

CpuInfo ReadCpu(const FileRoot& root, Notes* notes) {
  CpuInfo cpu;
  Cpuinfo info;
  if (const auto text = root.Read("/proc/cpuinfo", kCpuinfoLimit)) {
    info = ParseCpuinfo(*text);
    if (info.arch.empty()) AddNote(notes, "cpu: /proc/cpuinfo names no known architecture");
  } else {
    AddNote(notes, "cpu: /proc/cpuinfo could not be read");
  }
  cpu.arch = info.arch;
  cpu.vendor = info.vendor;
  cpu.model = info.model;
  if (cpu.arch == "x86-64" || cpu.arch == "x86") {
    cpu.features = X86FeaturesFromFlags(info.flags);
    cpu.simd_level = X86SimdLevel(cpu.features);
  } else if (cpu.arch == "aarch64") {
    cpu.features = ArmFeaturesFromFlags(info.flags);
    cpu.simd_level = ArmSimdLevel(cpu.features);
  }
  if (!info.arm_parts.empty()) {
    if (cpu.vendor.empty()) cpu.vendor = ArmVendorName(info.arm_parts.front().first);
    if (cpu.model.empty()) cpu.model = ArmModelName(info.arm_parts);
  }

  cpu.topology = ReadTopology(root, notes);
  if (cpu.topology.threads == 0 && info.processors > 0) {
    // Without sysfs the processors can only be counted, and are numbered as Linux does.
    cpu.topology.threads = info.processors;
    for (int number = 0; number < info.processors; ++number) cpu.topology.cpus.push_back(number);
    cpu.topology.source = "cpuinfo";
  }
  cpu.core_kinds = ReadCoreKinds(root, cpu.topology.cpus);
  cpu.usable_cpus = ReadUsableCpus(root, cpu.topology.cpus);
  cpu.cpu_quota = ReadCpuQuota(root);
  return cpu;
}

}  // namespace trine::detect
