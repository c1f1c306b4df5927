// Decides whether a PCI GPU is integrated or discrete, and whether it counts towards the tier. Pure
// functions.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "detect/gpu/gpu.h"

namespace trine::detect {

// The place of a device on the bus.
struct PciPlace {
  PciAddress address;
  // (vendor, device) of the bridges above the device, nearest first; empty when not known.
  std::vector<std::pair<uint32_t, uint32_t>> bridges;
};

// Fills family, name, kind and kind_reason from the ids, the memory sizes and the place. A known id
// decides; for an unknown id the kind is a guess, and its reason says so.
void ClassifyKind(const PciPlace& place, GpuInfo* gpu);

// Fills counted and counted_reason from kind, driver and family.
void ClassifyCounted(GpuInfo* gpu);

}  // namespace trine::detect
