// Where the workers of a team run.
#ifndef TRINE_RUNTIME_WORKER_CPUS_H_
#define TRINE_RUNTIME_WORKER_CPUS_H_

#include <cstdint>
#include <vector>

#include "detect/cpu.h"

namespace trine {

// Processors' worth of time this process may have, at least 1.
uint32_t UsableProcessors(const detect::CpuInfo& cpu);

// A processor for each worker, of those this process may use: one of each core before the second of
// any, the faster kind of a hybrid processor first. Empty when workers should not be bound: they
// are more than there is room for, a quota of time is what limits them, or they leave cores free,
// to which the system may move them when others are busy where they would be bound.
std::vector<int> WorkerCpus(const detect::CpuInfo& cpu, uint32_t workers);

}  // namespace trine

#endif  // TRINE_RUNTIME_WORKER_CPUS_H_
