#include "runtime/placement/worker_cpus.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace trine {
namespace {

bool Has(const std::vector<int>& cpus, int cpu) {
  return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end();
}

// Returns the position of the processor's kind; the faster kinds come first.
size_t KindOf(const detect::CpuInfo& cpu, int number) {
  size_t kind = 0;
  while (kind < cpu.core_kinds.size() && !Has(cpu.core_kinds[kind].cpus, number)) ++kind;
  return kind;
}

}  // namespace

uint32_t UsableProcessors(const detect::CpuInfo& cpu) {
  auto processors = static_cast<double>(std::max<size_t>(1, cpu.usable_cpus.size()));
  if (cpu.cpu_quota) processors = std::min(processors, std::max(1.0, std::floor(*cpu.cpu_quota)));
  return static_cast<uint32_t>(processors);
}

std::vector<int> WorkerCpus(const detect::CpuInfo& cpu, uint32_t workers) {
  if (workers < 2 || cpu.cpu_quota || workers > cpu.usable_cpus.size()) return {};
  std::vector<std::pair<size_t, int>> places;  // index within its core, processor
  for (const std::vector<int>& core : cpu.topology.core_cpus) {
    size_t of_core = 0;
    for (int number : core) {
      if (Has(cpu.usable_cpus, number)) places.push_back({of_core++, number});
    }
  }
  std::stable_sort(places.begin(), places.end(), [&](const auto& a, const auto& b) {
    const size_t a_kind = KindOf(cpu, a.second), b_kind = KindOf(cpu, b.second);
    return a.first != b.first ? a.first < b.first : a_kind < b_kind;
  });
  const auto cores = static_cast<size_t>(std::count_if(
      places.begin(), places.end(), [](const auto& place) { return place.first == 0; }));
  if (workers < cores || workers > places.size()) return {};
  std::vector<int> cpus;
  for (size_t i = 0; i < workers; ++i) cpus.push_back(places[i].second);
  return cpus;
}

}  // namespace trine
