#include "detect/gpu/gpu.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>

#include "detect/text.h"

namespace trine::detect {
namespace {

// A name in the device tree. GPUs of a system on a chip are not on PCI: they are found through
// devfreq and DRM, and named by the device tree.
struct Compatible {
  std::string_view prefix;
  const char* vendor;
  const char* family;
};

// Device-tree names, longest prefix first within a vendor.
constexpr Compatible kCompatibles[] = {
    {"arm,mali-valhall", "Arm", "Mali (Valhall)"},
    {"arm,mali-bifrost", "Arm", "Mali (Bifrost)"},
    {"arm,mali-t", "Arm", "Mali (Midgard)"},
    {"arm,mali-midgard", "Arm", "Mali (Midgard)"},
    {"arm,mali-4", "Arm", "Mali (Utgard)"},
    {"arm,mali", "Arm", "Mali"},
    {"qcom,adreno", "Qualcomm", "Adreno"},
    {"nvidia,gv11b", "NVIDIA", "Volta (Xavier)"},
    {"nvidia,ga10b", "NVIDIA", "Ampere (Orin)"},
    {"nvidia,gp10b", "NVIDIA", "Pascal (Tegra X2)"},
    {"nvidia,gm20b", "NVIDIA", "Maxwell (Tegra X1)"},
    {"img,img-", "Imagination", "PowerVR"},
    {"img,powervr", "Imagination", "PowerVR"},
    {"apple,agx", "Apple", "AGX"},
    {"brcm,2711-v3d", "Broadcom", "VideoCore VI"},
    {"brcm,2712-v3d", "Broadcom", "VideoCore VII"},
    {"vivante,gc", "Vivante", "GC"},
};

// Driver names of GPUs that the device tree does not name (ACPI, vendor kernels).
constexpr Compatible kDrivers[] = {
    {"panthor", "Arm", "Mali (Valhall)"},
    {"panfrost", "Arm", "Mali"},
    {"mali", "Arm", "Mali"},
    {"kgsl", "Qualcomm", "Adreno"},
    {"adreno", "Qualcomm", "Adreno"},
    {"gk20a", "NVIDIA", "Tegra"},
    {"powervr", "Imagination", "PowerVR"},
    {"pvrsrvkm", "Imagination", "PowerVR"},
};

// Returns true for families without a Vulkan driver whose compute is worth planning for.
bool IsTooOld(std::string_view family) {
  return family == "Mali (Utgard)" || family == "Mali (Midgard)" || family == "GC";
}

bool NamesGpu(std::string_view name) {
  constexpr std::string_view kWords[] = {"gpu", "mali", "adreno", "kgsl"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return name.find(word) != name.npos; });
}

// Fills vendor, family, name and kind_reason. Returns false if the device is not a known GPU.
bool Identify(const FileRoot& root, const std::string& device_path, GpuInfo* gpu) {
  if (const auto text = root.Read(device_path + "/of_node/compatible")) {
    // The file holds several names, each ending in NUL, the most specific first.
    for (const std::string_view name : Split(*text, '\0')) {
      for (const Compatible& known : kCompatibles) {
        if (!name.starts_with(known.prefix)) continue;
        gpu->vendor = known.vendor;
        gpu->family = known.family;
        gpu->name = CleanText(name, 64);
        gpu->kind_reason = "device tree: part of the chip";
        return true;
      }
    }
  }
  for (const Compatible& known : kDrivers) {
    if (!gpu->driver.starts_with(known.prefix)) continue;
    gpu->vendor = known.vendor;
    gpu->family = known.family;
    gpu->kind_reason = "its driver serves graphics that are part of the chip";
    return true;
  }
  return false;
}

// Adds the GPU whose folder is `device`, unless it is in `seen`. `entry` is the name of its class
// entry; a device that is otherwise unknown is added when `entry` is named like a GPU.
void AddDevice(const FileRoot& root, const std::string& device, std::string_view entry,
               std::set<std::string>* seen, std::vector<GpuInfo>* gpus) {
  const auto path = root.Resolve(device);
  // ReadPciGpus reads the devices with a PCI class.
  if (!path || root.Read(*path + "/class") || !seen->insert(*path).second) return;
  GpuInfo gpu;
  gpu.device_path = CleanText(*path, 512);
  gpu.driver = CleanText(root.LinkName(*path + "/driver").value_or(""), 64);
  if (!Identify(root, *path, &gpu)) {
    if (!NamesGpu(entry)) return;
    gpu.vendor = "unknown";
    gpu.name = CleanText(entry, 64);
    gpu.kind_reason = "a frequency-scaled device that is named like a GPU";
  }
  gpu.kind = GpuKind::kIntegrated;
  gpu.render_node = ReadRenderNode(root, *path);
  if (IsTooOld(gpu.family)) {
    gpu.counted_reason = "too old for a compute driver";
  } else if (gpu.driver.empty()) {
    gpu.counted_reason = "no driver bound";
  } else {
    gpu.counted = true;
    gpu.counted_reason = "driver " + gpu.driver;
  }
  gpus->push_back(std::move(gpu));
}

}  // namespace

const char* GpuKindName(GpuKind kind) {
  return kind == GpuKind::kIntegrated ? "integrated"
         : kind == GpuKind::kDiscrete ? "discrete"
                                      : "other";
}

std::string ReadRenderNode(const FileRoot& root, const std::string& device_path) {
  for (const std::string& name : root.List(device_path + "/drm")) {
    if (name.starts_with("renderD") && ParseU64(name.substr(7))) return "/dev/dri/" + name;
  }
  return "";
}

std::vector<GpuInfo> ReadGpus(const FileRoot& root, Notes* notes) {
  std::vector<GpuInfo> gpus = ReadPciGpus(root, notes);
  std::vector<GpuInfo> platform = ReadPlatformGpus(root);
  for (const GpuInfo& gpu : platform) {
    if (!gpu.counted) {
      AddNote(notes, "gpu " + gpu.device_path + " (" + gpu.vendor +
                         "): not counted: " + gpu.counted_reason);
    }
  }
  gpus.insert(gpus.end(), std::make_move_iterator(platform.begin()),
              std::make_move_iterator(platform.end()));
  return gpus;
}

std::string GfxTargetName(uint64_t gfx_target_version) {
  const uint64_t major = gfx_target_version / 10000;
  const uint64_t minor = gfx_target_version / 100 % 100;
  const uint64_t stepping = gfx_target_version % 100;
  if (major == 0 || major > 99 || minor > 15 || stepping > 15) return "";
  char text[16];
  std::snprintf(text, sizeof(text), "gfx%u%x%x", static_cast<unsigned>(major),
                static_cast<unsigned>(minor), static_cast<unsigned>(stepping));
  return text;
}

std::vector<KfdNode> ReadKfdNodes(const FileRoot& root) {
  constexpr char kFolder[] = "/sys/class/kfd/kfd/topology/nodes";
  std::vector<KfdNode> nodes;
  for (const std::string& name : root.List(kFolder)) {
    const auto text = root.Read(std::string(kFolder) + "/" + name + "/properties");
    if (!text) continue;
    const std::string target = GfxTargetName(FindNumber(*text, "gfx_target_version").value_or(0));
    const auto location = FindNumber(*text, "location_id");
    const uint64_t domain = FindNumber(*text, "domain").value_or(0);
    if (target.empty() || !location || *location > 0xffff || domain > 0xffffffffu) continue;
    nodes.push_back({static_cast<uint32_t>(domain), static_cast<uint32_t>(*location), target});
  }
  return nodes;
}

std::string GfxTargetAt(const std::vector<KfdNode>& nodes, const PciAddress& address) {
  const uint32_t location = address.bus << 8 | address.device << 3 | address.function;
  for (const KfdNode& node : nodes) {
    if (node.domain == address.domain && node.location_id == location) return node.gfx_target;
  }
  return "";
}

std::vector<GpuInfo> ReadPlatformGpus(const FileRoot& root) {
  std::vector<GpuInfo> gpus;
  std::set<std::string> seen;
  constexpr char kDevfreq[] = "/sys/class/devfreq";
  for (const std::string& name : root.List(kDevfreq)) {
    AddDevice(root, std::string(kDevfreq) + "/" + name + "/device", name, &seen, &gpus);
  }
  // Some chips do not scale their GPU's frequency and only have the render node. The entry name is
  // not passed on, because display controllers have DRM devices too.
  constexpr char kDrm[] = "/sys/class/drm";
  for (const std::string& name : root.List(kDrm)) {
    if (!name.starts_with("renderD")) continue;
    AddDevice(root, std::string(kDrm) + "/" + name + "/device", "", &seen, &gpus);
  }
  return gpus;
}

}  // namespace trine::detect
