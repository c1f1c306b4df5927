// Looks up a GPU by its PCI ids, in constant tables. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "detect/gpu/gpu.h"

namespace trine::detect {

inline constexpr uint32_t kVendorAmd = 0x1002;
inline constexpr uint32_t kVendorIntel = 0x8086;
inline constexpr uint32_t kVendorNvidia = 0x10de;

// Device ids first..last of one vendor. Entries of a vendor ascend and do not overlap.
struct GpuIdRange {
  uint16_t first, last;
  GpuKind kind;
  const char* family;
  const char* name;  // Chip or product; "" if the family says enough.
  bool too_old;      // No Vulkan or compute driver worth using exists.
};

// Returns null when the id is not in the tables.
const GpuIdRange* FindGpuId(uint32_t vendor_id, uint32_t device_id);

// Returns the table of one vendor; empty for a vendor without one.
std::span<const GpuIdRange> GpuIdTable(uint32_t vendor_id);

// Returns "AMD", "ASPEED", ...; "vendor 0x1234" when unknown.
std::string GpuVendorName(uint32_t vendor_id);

// Returns true for vendors whose devices only draw a screen: management chips, virtual machines.
bool IsDisplayOnlyVendor(uint32_t vendor_id);

}  // namespace trine::detect
