#include "backends/cpu/device.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "detect/machine.h"
#include "kernels/cpu/levels/self_test.h"

namespace trine::cpu {
namespace {

// Facts that don't change while the process lives.
struct Facts {
  std::string name;
  std::string driver;
  std::vector<detect::SimdFeature> features;
  cpu_kernels::Caches caches;
};

const Facts& CpuFacts() {
  static const Facts facts = [] {
    const detect::ProcessorInfo cpu = detect::DetectProcessor();
    utsname kernel{};
    uname(&kernel);
    return Facts{cpu.model.empty() ? cpu.arch + " processor" : cpu.model,
                 std::string(kernel.sysname) + " " + kernel.release, cpu.features,
                 CachesOf(detect::ReadCoreCaches(detect::FileRoot("")))};
  }();
  return facts;
}

using backends::SetText;
using cpu_kernels::Level;

// Returns "" if the level may run, else the first feature that is missing.
std::string Lacking(const Level& level, const std::vector<detect::SimdFeature>& features) {
  for (const char* feature : level.required) {
    if (!detect::Usable(features, feature)) return feature;
  }
  return "";
}

std::string Names(const std::vector<detect::SimdFeature>* that_run) {
  std::string names;
  for (const Level& level : cpu_kernels::Levels()) {
    if (level.table == nullptr) continue;
    if (that_run != nullptr && !Lacking(level, *that_run).empty()) continue;
    if (!names.empty()) names += ", ";
    names += level.name;
  }
  return names;
}

}  // namespace

// Says that the kernels in use were not optimised as a package's are, because the build was to be
// quick. Returns "" if they were.
std::string LessOptimised(const Level& level) {
  const std::string optimised = TRINE_OPTIMISED_LEVEL;
  if (optimised.empty() || optimised == level.name ||
      level.table == &cpu_kernels::kReferenceLevel) {
    return "";
  }
  return std::string("cpu: this build optimises the kernels of level ") + optimised +
         " fully, and uses those of level " + level.name +
         ", which are slower: -DTRINE_QUICK_CODE=OFF optimises all";
}

trine_backend MakeBackend(const trine_host* host) {
  trine_backend backend{host, ChooseKernels(CpuFacts().features, std::getenv("TRINE_CPU_ISA")), "",
                        CpuFacts().caches, std::make_unique<WayTrials>()};
  if (backend.choice.level == nullptr) return backend;
  if (const std::string slower = LessOptimised(*backend.choice.level); !slower.empty()) {
    host->log(host->self, TRINE_LOG_WARNING, slower.c_str());
  }
  backend.failure = SelfTestFailure(*backend.choice.level);
  if (!backend.exact()) {
    const std::string message = std::string("cpu: the kernels of level ") +
                                backend.choice.level->name + " differ from the reference in " +
                                backend.failure + "; the device offers fast numerics only";
    host->log(host->self, TRINE_LOG_WARNING, message.c_str());
  }
  return backend;
}

trine_device_info DescribeDevice(const trine_backend& backend) {
  trine_device_info info{};
  detect::Notes notes;
  const detect::MemoryInfo memory = detect::ReadMemory(detect::FileRoot(""), &notes);
  info.tier = TRINE_TIER_CPU;
  info.flags = TRINE_DEVICE_UNIFIED_MEMORY;
  info.numerics = backend.exact() ? TRINE_NUMERICS_EXACT : TRINE_NUMERICS_FAST;
  if (!backend.exact()) {
    std::snprintf(info.reason, sizeof(info.reason), "self-test: %s", backend.failure.c_str());
  }
  info.memory_total = memory.total_bytes;
  info.memory_free = memory.available_bytes;
  info.buffer_alignment = Memory::kAlignment;
  info.import_alignment = Memory::kAlignment;
  // The device can read all memory that the process can read.
  info.imports = TRINE_IMPORTS_TRIED | TRINE_IMPORTS_WRITABLE | TRINE_IMPORTS_READ_ONLY;
  SetText(info.name, CpuFacts().name);
  SetText(info.driver, CpuFacts().driver);
  SetText(info.memory_pool, "system");
  SetText(info.bandwidth_domain, "system");
  if (backend.choice.level != nullptr) {
    SetText(info.arch, backend.choice.level->name);
  } else {
    info.flags |= TRINE_DEVICE_UNUSABLE;
    SetText(info.reason, backend.choice.reason);
  }
  return info;
}

KernelChoice ChooseKernels(const std::vector<detect::SimdFeature>& features, const char* wanted) {
  if (wanted == nullptr || *wanted == '\0') {
    const auto usable = [&](const char* feature) { return detect::Usable(features, feature); };
    const Level* best = cpu_kernels::BestLevel(usable);
    // The reference runs even where no level can.
    return {best != nullptr ? best : cpu_kernels::FindLevel("reference"), ""};
  }
  const std::string asked = std::string("TRINE_CPU_ISA=") + wanted;
  const Level* level = cpu_kernels::FindLevel(wanted);
  if (level == nullptr || level->table == nullptr) {
    return {nullptr, asked + ": this build has no such level; it has " + Names(nullptr)};
  }
  const std::string lacking = Lacking(*level, features);
  if (!lacking.empty()) {
    return {nullptr,
            asked + ": " + lacking + " can't be used here; levels that can: " + Names(&features)};
  }
  return {level, ""};
}

cpu_kernels::Caches CachesOf(const detect::CoreCaches& detected) {
  cpu_kernels::Caches caches;
  if (detected.first_level != 0) caches.first_level = static_cast<int64_t>(detected.first_level);
  if (detected.second_level != 0) caches.second_level = static_cast<int64_t>(detected.second_level);
  return caches;
}

std::string SelfTestFailure(const Level& level) {
  static std::mutex mutex;
  static std::map<const cpu_kernels::KernelTable*, std::string> failures;
  std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, is_new] = failures.try_emplace(level.table);
  if (is_new) entry->second = cpu_kernels::RunSelfTest(*level.table);
  return entry->second;
}

}  // namespace trine::cpu
