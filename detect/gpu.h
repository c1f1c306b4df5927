// GpuInfo: the display devices and accelerators of a machine, from files alone.
//
// Nothing here loads a driver or opens a device: a sleeping laptop GPU stays asleep, and a broken
// driver cannot take detection down. Whether a GPU can really compute is for a backend to find out;
// `counted` is the guess that decides the ComputeTier.

#ifndef TRINE_DETECT_GPU_H_
#define TRINE_DETECT_GPU_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detect/file_root.h"
#include "detect/notes.h"

namespace trine::detect {

enum class GpuKind {
  kIntegrated,  // Shares the processor's memory.
  kDiscrete,    // Has its own.
  kOther,       // Draws a screen only: server management chips, virtual adapters.
};

// "integrated", "discrete", "other".
const char* GpuKindName(GpuKind kind);

struct GpuInfo {
  std::string pci_address;  // "0000:03:00.0"; "" for a GPU that is not on PCI.
  std::string device_path;  // In sysfs, within the root.
  uint32_t pci_class = 0;   // 0x030000 VGA, 0x038000 other display, 0x120000 accelerator, ...
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  uint32_t subsystem_vendor_id = 0;
  uint32_t subsystem_device_id = 0;
  std::string vendor;  // "AMD", "Intel", "NVIDIA", ...; "vendor 0x1234" when unknown.
  std::string family;  // "RDNA3", "Xe-LP (Tiger Lake)", "Hopper"; "" when unknown.
  std::string name;    // "Navi 31", or what the driver calls it; "" when unknown.

  GpuKind kind = GpuKind::kOther;
  std::string kind_reason;  // One phrase: why it was classed so.

  bool counted = false;        // Counts towards the ComputeTier.
  std::string counted_reason;  // One phrase: why, or why not.

  std::string driver;                // "amdgpu", "i915", "vfio-pci"; "" when none is bound.
  std::string render_node;           // "/dev/dri/renderD128"; "" when there is none.
  std::string gfx_target;            // AMD's compiler target from KFD, "gfx1100"; "" when unknown.
  bool is_virtual_function = false;  // A slice of another GPU (SR-IOV).

  std::optional<uint64_t> vram_bytes;  // Own memory, or the carve-out of an integrated GPU.
  std::optional<uint64_t> gtt_bytes;   // System memory the GPU may map (amdgpu).
  std::optional<uint64_t> bar_bytes;  // Largest prefetchable window: VRAM is at least a part of it.
  std::optional<int> numa_node;
};

// A place on PCI; ordered as the bus is.
struct PciAddress {
  uint32_t domain = 0;
  uint32_t bus = 0;
  uint32_t device = 0;
  uint32_t function = 0;
};

// "0000:03:00.0"; a domain may have up to eight digits.
std::optional<PciAddress> ParsePciAddress(std::string_view text);

// All GPUs of a root: PCI ones by address, then those of a system on a chip.
std::vector<GpuInfo> ReadGpus(const FileRoot& root, Notes* notes);

// The two halves of ReadGpus.
std::vector<GpuInfo> ReadPciGpus(const FileRoot& root, Notes* notes);
std::vector<GpuInfo> ReadPlatformGpus(const FileRoot& root);

}  // namespace trine::detect

#endif  // TRINE_DETECT_GPU_H_
