// Lists the display devices and accelerators of a machine (GpuInfo), from files alone.
//
// Nothing here loads a driver or opens a device: a sleeping laptop GPU stays asleep, and a broken
// driver cannot break detection. Only a backend can find out whether a GPU really computes;
// `counted` is the guess that decides the ComputeTier.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detect/file_root.h"

namespace trine::detect {

enum class GpuKind {
  kIntegrated,  // Shares the processor's memory.
  kDiscrete,    // Has its own memory.
  kOther,       // Only draws a screen: server management chips, virtual adapters.
};

// Returns "integrated", "discrete" or "other".
const char* GpuKindName(GpuKind kind);

struct GpuInfo {
  std::string pci_address;  // "0000:03:00.0"; "" for a GPU that is not on PCI.
  std::string device_path;  // The device's folder in sysfs, within the root.
  uint32_t pci_class = 0;   // 0x030000 VGA, 0x038000 other display, 0x120000 accelerator, ...
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  uint32_t subsystem_vendor_id = 0;
  uint32_t subsystem_device_id = 0;
  std::string vendor;  // "AMD", "Intel", "NVIDIA", ...; "vendor 0x1234" when unknown.
  std::string family;  // "RDNA3", "Xe-LP (Tiger Lake)", "Hopper"; "" when unknown.
  std::string name;    // "Navi 31", or the driver's name for it; "" when unknown.

  GpuKind kind = GpuKind::kOther;
  std::string kind_reason;  // Why it has this kind, in one phrase.

  bool counted = false;        // Counts towards the ComputeTier.
  std::string counted_reason;  // Why it counts or does not, in one phrase.

  std::string driver;                // "amdgpu", "i915", "vfio-pci"; "" when none is bound.
  std::string render_node;           // "/dev/dri/renderD128"; "" when there is none.
  std::string gfx_target;            // AMD's compiler target from KFD, "gfx1100"; "" when unknown.
  bool is_virtual_function = false;  // A slice of another GPU (SR-IOV).

  std::optional<uint64_t> vram_bytes;  // Own memory, or the carve-out of an integrated GPU.
  std::optional<uint64_t> gtt_bytes;   // System memory that the GPU may map (amdgpu).
  std::optional<uint64_t> bar_bytes;  // Largest prefetchable window: shows at least a part of VRAM.
  std::optional<int> numa_node;
};

// A device's address on PCI.
struct PciAddress {
  uint32_t domain = 0;
  uint32_t bus = 0;
  uint32_t device = 0;
  uint32_t function = 0;
};

// Parses "0000:03:00.0"; a domain may have up to eight digits.
std::optional<PciAddress> ParsePciAddress(std::string_view text);

// Returns all GPUs of a root: first those on PCI, by address, then those of a system on a chip.
std::vector<GpuInfo> ReadGpus(const FileRoot& root, Notes* notes);

// Returns the render node of the device whose sysfs folder is given; "" if it has none.
std::string ReadRenderNode(const FileRoot& root, const std::string& device_path);

// Return the GPUs on PCI, and those of a system on a chip: the two halves of ReadGpus.
std::vector<GpuInfo> ReadPciGpus(const FileRoot& root, Notes* notes);
std::vector<GpuInfo> ReadPlatformGpus(const FileRoot& root);

// A GPU as AMD's compute driver (KFD) describes it. Only KFD's topology names the compiler target
// before any ROCm library is loaded.
struct KfdNode {
  uint32_t domain = 0;
  uint32_t location_id = 0;  // bus << 8 | device << 3 | function.
  std::string gfx_target;    // "gfx90a".
};

// Returns KFD's GPU nodes; leaves out nodes without a target (the processors).
std::vector<KfdNode> ReadKfdNodes(const FileRoot& root);

// Returns "gfx1100" for 110000 and "gfx90a" for 90010. The number has two decimal digits each for
// major, minor and stepping; the name has major in decimal and the others as one hexadecimal digit
// each. Returns "" for a number that names no target.
std::string GfxTargetName(uint64_t gfx_target_version);

// Returns the compiler target of the node at that address; "" if there is no such node.
std::string GfxTargetAt(const std::vector<KfdNode>& nodes, const PciAddress& address);

}  // namespace trine::detect
