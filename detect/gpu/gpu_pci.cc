// Finds the GPUs on PCI, in /sys/bus/pci/devices.
#include "detect/gpu/gpu_pci.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "detect/gpu/gpu_ids.h"
#include "detect/text.h"

namespace trine::detect {
namespace {

constexpr char kDevices[] = "/sys/bus/pci/devices";

std::optional<uint32_t> ReadId(const FileRoot& root, const std::string& path, uint32_t max) {
  const auto value = root.ReadHex(path);
  if (!value || *value > max) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

bool IsGpuClass(uint32_t pci_class) {
  const uint32_t base = pci_class >> 16;
  return base == 0x03 || base == 0x12;  // Display controller, processing accelerator.
}

// Returns true for every display controller. A processing accelerator may be anything (DSA, NPUs,
// FPGAs), so it must be AMD's or have a known id.
bool IsGpu(uint32_t pci_class, uint32_t vendor_id, uint32_t device_id) {
  if (!IsGpuClass(pci_class)) return false;
  return pci_class >> 16 == 0x03 || vendor_id == kVendorAmd ||
         FindGpuId(vendor_id, device_id) != nullptr;
}

// Returns the bridges above a device, nearest first: sysfs nests a device's folder in theirs.
std::vector<std::pair<uint32_t, uint32_t>> ReadBridges(const FileRoot& root,
                                                       const std::string& device_path) {
  std::vector<std::pair<uint32_t, uint32_t>> bridges;
  std::string folder = device_path;
  for (;;) {
    folder.erase(std::min(folder.rfind('/'), folder.size()));
    const size_t slash = folder.rfind('/');
    if (slash == std::string::npos) break;
    if (!ParsePciAddress(std::string_view(folder).substr(slash + 1))) break;
    bridges.emplace_back(ReadId(root, folder + "/vendor", 0xffff).value_or(0),
                         ReadId(root, folder + "/device", 0xffff).value_or(0));
  }
  return bridges;
}

// Returns the size of the largest prefetchable memory window of the six that a device has.
std::optional<uint64_t> ReadLargestBar(const FileRoot& root, const std::string& path) {
  constexpr uint64_t kMemory = 0x200, kPrefetch = 0x2000;  // IORESOURCE_MEM, _PREFETCH.
  const auto text = root.Read(path);
  if (!text) return std::nullopt;
  std::optional<uint64_t> largest;
  int line_number = 0;
  for (std::string_view line : Split(*text, '\n')) {
    if (++line_number > 6) break;  // The ROM and the windows of virtual functions follow.
    const auto words = Words(line);
    if (words.size() != 3) continue;
    const auto start = ParseHex(words[0]), end = ParseHex(words[1]), flags = ParseHex(words[2]);
    if (!start || !end || !flags || *end <= *start) continue;
    if ((*flags & kMemory) == 0 || (*flags & kPrefetch) == 0) continue;
    const uint64_t size = *end - *start;  // One less than the size, which might overflow.
    if (size >= uint64_t{1} << 48) continue;
    largest = std::max(largest.value_or(0), size + 1);
  }
  return largest;
}

// Returns the driver's name for the product; "" from most drivers.
std::string ReadProductName(const FileRoot& root, const GpuInfo& gpu) {
  if (gpu.driver == "amdgpu") {
    if (const auto text = root.Read(gpu.device_path + "/product_name")) return CleanText(*text);
  }
  if (gpu.driver == "nvidia") {
    const auto text = root.Read("/proc/driver/nvidia/gpus/" + gpu.pci_address + "/information");
    for (std::string_view line : Split(text ? *text : std::string_view(), '\n')) {
      constexpr std::string_view kKey = "Model:";
      if (line.starts_with(kKey)) return CleanText(line.substr(kKey.size()));
    }
  }
  return "";
}

void ReadMemorySizes(const FileRoot& root, GpuInfo* gpu) {
  gpu->bar_bytes = ReadLargestBar(root, gpu->device_path + "/resource");
  if (gpu->driver != "amdgpu") return;
  gpu->vram_bytes = root.ReadU64(gpu->device_path + "/mem_info_vram_total");
  gpu->gtt_bytes = root.ReadU64(gpu->device_path + "/mem_info_gtt_total");
}

GpuInfo ReadOne(const FileRoot& root, const std::string& name, const PciAddress& address,
                const std::vector<KfdNode>& kfd) {
  const std::string link = std::string(kDevices) + "/" + name;
  GpuInfo gpu;
  gpu.pci_address = name;
  gpu.device_path = CleanText(root.Resolve(link).value_or(link), 512);
  const std::string& path = gpu.device_path;
  gpu.pci_class = ReadId(root, path + "/class", 0xffffff).value_or(0);
  gpu.vendor_id = ReadId(root, path + "/vendor", 0xffff).value_or(0);
  gpu.device_id = ReadId(root, path + "/device", 0xffff).value_or(0);
  gpu.subsystem_vendor_id = ReadId(root, path + "/subsystem_vendor", 0xffff).value_or(0);
  gpu.subsystem_device_id = ReadId(root, path + "/subsystem_device", 0xffff).value_or(0);
  gpu.driver = CleanText(root.LinkName(path + "/driver").value_or(""), 64);
  gpu.is_virtual_function = root.LinkName(path + "/physfn").has_value();
  gpu.render_node = ReadRenderNode(root, path);
  gpu.gfx_target = GfxTargetAt(kfd, address);
  // Without a node the kernel writes -1, for which ReadU64 returns no value.
  if (const auto node = root.ReadU64(path + "/numa_node"); node && *node < kMaxCpus) {
    gpu.numa_node = static_cast<int>(*node);
  }
  gpu.name = ReadProductName(root, gpu);
  ReadMemorySizes(root, &gpu);
  ClassifyKind({address, ReadBridges(root, path)}, &gpu);
  ClassifyCounted(&gpu);
  return gpu;
}

void AddNotesFor(const GpuInfo& gpu, Notes* notes) {
  if (gpu.kind == GpuKind::kOther) return;
  const std::string who = "gpu " + gpu.pci_address + " (" + gpu.vendor + "): ";
  if (!gpu.counted) {
    AddNote(notes, who + "not counted: " + gpu.counted_reason);
  } else if (gpu.kind_reason != "known PCI id") {
    AddNote(notes, who + gpu.kind_reason + "; taken for " + GpuKindName(gpu.kind));
  }
}

void Set(GpuInfo* gpu, GpuKind kind, const char* reason) {
  gpu->kind = kind;
  gpu->kind_reason = reason;
}

// Every AMD card since RDNA1 has its own switch between the slot and the GPU.
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
      // Since 2004 Intel's integrated graphics are always at this address, and nothing else can be.
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

std::optional<PciAddress> ParsePciAddress(std::string_view text) {
  const size_t first = text.find(':');
  if (first == text.npos || first < 4 || first > 8) return std::nullopt;
  // The part after the domain: "bb:dd.f".
  const std::string_view rest = text.substr(first + 1);
  if (rest.size() != 7 || rest[2] != ':' || rest[5] != '.') return std::nullopt;
  const std::array<std::string_view, 4> parts{text.substr(0, first), rest.substr(0, 2),
                                              rest.substr(3, 2), rest.substr(6, 1)};
  constexpr uint64_t kMax[] = {0xffffffffu, 0xff, 0x1f, 7};
  uint32_t values[4];
  for (size_t i = 0; i < parts.size(); ++i) {
    // Only digits are allowed: ParseHex alone would accept blanks and "0x".
    if (parts[i].find_first_not_of("0123456789abcdefABCDEF") != parts[i].npos) return std::nullopt;
    const auto value = ParseHex(parts[i]);
    if (!value || *value > kMax[i]) return std::nullopt;
    values[i] = static_cast<uint32_t>(*value);
  }
  return PciAddress{values[0], values[1], values[2], values[3]};
}

std::vector<GpuInfo> ReadPciGpus(const FileRoot& root, Notes* notes) {
  std::vector<std::pair<PciAddress, std::string>> found;
  int unreadable = 0;
  for (const std::string& name : root.List(kDevices)) {
    const auto address = ParsePciAddress(name);
    if (!address) continue;
    const std::string path = std::string(kDevices) + "/" + name;
    const auto pci_class = ReadId(root, path + "/class", 0xffffff);
    if (!pci_class) {
      ++unreadable;
      continue;
    }
    if (!IsGpuClass(*pci_class)) continue;
    const auto vendor = ReadId(root, path + "/vendor", 0xffff);
    const auto device = ReadId(root, path + "/device", 0xffff);
    if (!vendor || !device) {
      ++unreadable;
    } else if (IsGpu(*pci_class, *vendor, *device)) {
      found.emplace_back(*address, name);
    }
  }
  if (unreadable > 0) {
    AddNote(notes, "gpu: " + std::to_string(unreadable) +
                       " PCI devices could not be read; a GPU among them is missed");
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.domain, a.first.bus, a.first.device, a.first.function) <
           std::tie(b.first.domain, b.first.bus, b.first.device, b.first.function);
  });
  std::vector<GpuInfo> gpus;
  const std::vector<KfdNode> kfd = found.empty() ? std::vector<KfdNode>() : ReadKfdNodes(root);
  for (const auto& [address, name] : found) {
    gpus.push_back(ReadOne(root, name, address, kfd));
    AddNotesFor(gpus.back(), notes);
  }
  return gpus;
}

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
