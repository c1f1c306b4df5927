// Chooses the processors that the workers of a team run on.
#pragma once

#include <cstdint>
#include <vector>

#include "detect/cpu/cpu.h"

namespace trine {

// Returns how many processors this process may keep busy, by its affinity and its quota; at
// least 1.
uint32_t UsableProcessors(const detect::CpuInfo& cpu);

// Returns a processor for each worker. Takes one processor of each core before a second one of any
// core, and the faster kind of a hybrid processor first. Returns none if workers should not be
// bound. That is so if there are more workers than processors, if a quota limits their time, or if
// there are more cores than workers: then the system may move workers away from busy cores.
std::vector<int> WorkerCpus(const detect::CpuInfo& cpu, uint32_t workers);

}  // namespace trine
