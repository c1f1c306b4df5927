// What is known about a GPU from its PCI ids alone. Pure lookup in constant tables.

#ifndef TRINE_DETECT_GPU_IDS_H_
#define TRINE_DETECT_GPU_IDS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "detect/gpu.h"

namespace trine::detect {

inline constexpr uint32_t kVendorAmd = 0x1002;
inline constexpr uint32_t kVendorIntel = 0x8086;
inline constexpr uint32_t kVendorNvidia = 0x10de;

// Device ids first..last of one vendor. Entries of a vendor ascend and do not overlap.
struct GpuIdRange {
  uint16_t first, last;
  GpuKind kind;
  const char* family;
  const char* name;  // Chip or product; "" where the family says all.
  bool too_old;      // No Vulkan or compute driver worth using exists.
};

// Null when the id is not in the tables.
const GpuIdRange* FindGpuId(uint32_t vendor_id, uint32_t device_id);

// The table of one vendor, for tests; null and 0 for a vendor without one.
const GpuIdRange* GpuIdTable(uint32_t vendor_id, size_t* count);

// "AMD", "ASPEED", ...; "vendor 0x1234" when unknown.
std::string GpuVendorName(uint32_t vendor_id);

// True for vendors whose display devices only draw a screen: management chips, virtual machines.
bool IsDisplayOnlyVendor(uint32_t vendor_id);

}  // namespace trine::detect

#endif  // TRINE_DETECT_GPU_IDS_H_
