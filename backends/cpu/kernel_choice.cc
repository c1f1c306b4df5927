#include "backends/cpu/kernel_choice.h"

#include <map>
#include <mutex>

#include "kernels/cpu/self_test.h"

namespace trine::cpu {
namespace {

using cpu_kernels::Level;

// "" when the level may run, else the first feature it lacks.
std::string Lacking(const Level& level, const std::vector<detect::SimdFeature>& features) {
  for (const char* feature : level.required) {
    if (!detect::Usable(features, feature)) return feature;
  }
  return "";
}

std::string Names(const std::vector<detect::SimdFeature>* that_run) {
  std::string names;
  for (const Level& level : cpu_kernels::Levels()) {
    if (that_run != nullptr && !Lacking(level, *that_run).empty()) continue;
    if (!names.empty()) names += ", ";
    names += level.name;
  }
  return names;
}

}  // namespace

KernelChoice ChooseKernels(const std::vector<detect::SimdFeature>& features, const char* wanted) {
  if (wanted == nullptr || *wanted == '\0') {
    const auto usable = [&](const char* feature) { return detect::Usable(features, feature); };
    const Level* best = cpu_kernels::BestLevel(usable);
    // What no level is written for, the reference can still run.
    return {best != nullptr ? best : cpu_kernels::FindLevel("reference"), ""};
  }
  const std::string asked = std::string("TRINE_CPU_ISA=") + wanted;
  const Level* level = cpu_kernels::FindLevel(wanted);
  if (level == nullptr) {
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
