// Whether a PCI GPU is integrated or discrete, and whether it counts towards the tier. Pure.

#ifndef TRINE_DETECT_GPU_CLASSIFY_H_
#define TRINE_DETECT_GPU_CLASSIFY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "detect/gpu.h"

namespace trine::detect {

// What the bus says about a device beyond its own ids.
struct PciPlace {
  PciAddress address;
  // (vendor, device) of the bridges above it, nearest first; empty when not known.
  std::vector<std::pair<uint32_t, uint32_t>> bridges;
};

// Fills family, name, kind and kind_reason from the ids, the memory sizes and the place. A known id
// decides; the rules for unknown ids are guesses and their reasons say so.
void ClassifyKind(const PciPlace& place, GpuInfo* gpu);

// Fills counted and counted_reason from kind, driver and family.
void ClassifyCounted(GpuInfo* gpu);

}  // namespace trine::detect

#endif  // TRINE_DETECT_GPU_CLASSIFY_H_
