#include "detect/gpu_classify.h"

#include <algorithm>

#include "detect/gpu_ids.h"

namespace trine::detect {
namespace {

void Set(GpuInfo* gpu, GpuKind kind, const char* reason) {
  gpu->kind = kind;
  gpu->kind_reason = reason;
}

// Every AMD card since RDNA1 carries a switch of its own between the slot and the GPU.
bool BehindNaviSwitch(const PciPlace& place) {
  return std::any_of(place.bridges.begin(), place.bridges.end(), [](const auto& bridge) {
    return bridge.first == kVendorAmd && (bridge.second == 0x1478 || bridge.second == 0x1479);
  });
}

void GuessAmd(const PciPlace& place, GpuInfo* gpu) {
  // Firmware carves at most this much out of system memory unless the user asks for more.
  constexpr uint64_t kUsualCarveOut = uint64_t{2} << 30;
  if (gpu->pci_class >> 16 == 0x12) {
    Set(gpu, GpuKind::kDiscrete, "unknown AMD id: processing accelerator");
  } else if (BehindNaviSwitch(place)) {
    Set(gpu, GpuKind::kDiscrete, "unknown AMD id: behind the switch of an AMD card");
  } else if (gpu->vram_bytes && *gpu->vram_bytes > kUsualCarveOut) {
    Set(gpu, GpuKind::kDiscrete, "unknown AMD id: more than 2 GiB of its own memory");
  } else if (gpu->vram_bytes && place.bridges.size() <= 1) {
    Set(gpu, GpuKind::kIntegrated, "unknown AMD id: small memory, directly at a root port");
  } else {
    Set(gpu, GpuKind::kDiscrete, "unknown AMD id: nothing marks it as integrated");
  }
}

void GuessUnknownId(const PciPlace& place, GpuInfo* gpu) {
  switch (gpu->vendor_id) {
    case kVendorIntel:
      // Since 2004 Intel's own graphics are always here, and nothing else can be.
      if (place.address.bus == 0 && place.address.device == 2) {
        Set(gpu, GpuKind::kIntegrated, "unknown Intel id: at 00:02, where the processor's is");
      } else {
        Set(gpu, GpuKind::kDiscrete, "unknown Intel id: not at 00:02");
      }
      return;
    case kVendorAmd:
      GuessAmd(place, gpu);
      return;
    case kVendorNvidia:
      Set(gpu, GpuKind::kDiscrete, "unknown NVIDIA id: on PCI they are cards");
      return;
    default:
      Set(gpu, GpuKind::kOther, "vendor without a compute driver known here");
  }
}

}  // namespace

void ClassifyKind(const PciPlace& place, GpuInfo* gpu) {
  gpu->vendor = GpuVendorName(gpu->vendor_id);
  if (IsDisplayOnlyVendor(gpu->vendor_id)) {
    Set(gpu, GpuKind::kOther, "display adapter of a management chip or virtual machine");
    return;
  }
  if (const GpuIdRange* known = FindGpuId(gpu->vendor_id, gpu->device_id)) {
    gpu->family = known->family;
    if (gpu->name.empty()) gpu->name = known->name;
    Set(gpu, known->kind, "known PCI id");
    return;
  }
  GuessUnknownId(place, gpu);
}

void ClassifyCounted(GpuInfo* gpu) {
  const GpuIdRange* known = FindGpuId(gpu->vendor_id, gpu->device_id);
  const std::string& driver = gpu->driver;
  gpu->counted = false;
  if (gpu->kind == GpuKind::kOther) {
    gpu->counted_reason = "draws a screen only";
  } else if (driver.empty()) {
    gpu->counted_reason = "no driver bound";
  } else if (driver == "vfio-pci" || driver == "pci-stub" || driver == "xen-pciback") {
    gpu->counted_reason = "bound to " + driver + ": set aside for a virtual machine";
  } else if (known != nullptr && known->too_old) {
    gpu->counted_reason = "too old for a compute driver";
  } else if (driver == "radeon" || driver == "gma500") {
    gpu->counted_reason = "driver " + driver + " has no compute";
  } else {
    gpu->counted = true;
    gpu->counted_reason = "driver " + driver;
  }
}

}  // namespace trine::detect
