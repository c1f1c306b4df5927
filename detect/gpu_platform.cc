// GPUs of a system on a chip: not on PCI, found through devfreq and DRM, named by the device tree.

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "detect/gpu.h"
#include "detect/text.h"

namespace trine::detect {
namespace {

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

// Driver names of GPUs whose device tree says nothing (ACPI, vendor kernels).
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

// Midgard and Utgard have no Vulkan driver with compute worth planning for.
bool IsTooOld(std::string_view family) {
  return family == "Mali (Utgard)" || family == "Mali (Midgard)" || family == "GC";
}

bool NamesGpu(std::string_view name) {
  for (const std::string_view word : {"gpu", "mali", "adreno", "kgsl"}) {
    if (name.find(word) != name.npos) return true;
  }
  return false;
}

// Fills vendor, family, name and kind_reason; false when the device is no GPU.
bool Identify(const FileRoot& root, const std::string& device_path, GpuInfo* gpu) {
  if (const auto text = root.Read(device_path + "/of_node/compatible")) {
    // Several names, each ending in NUL, the most specific first.
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

// `device` is the folder of the device behind a class entry.
void AddDevice(const FileRoot& root, const std::string& device, std::string_view entry,
               std::set<std::string>* seen, std::vector<GpuInfo>* gpus) {
  const auto path = root.Resolve(device);
  // A device with a PCI class is the other reader's.
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
  for (const std::string& name : root.List(*path + "/drm")) {
    if (name.starts_with("renderD") && ParseU64(name.substr(7))) {
      gpu.render_node = "/dev/dri/" + name;
    }
  }
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

std::vector<GpuInfo> ReadPlatformGpus(const FileRoot& root) {
  std::vector<GpuInfo> gpus;
  std::set<std::string> seen;
  constexpr char kDevfreq[] = "/sys/class/devfreq";
  for (const std::string& name : root.List(kDevfreq)) {
    AddDevice(root, std::string(kDevfreq) + "/" + name + "/device", name, &seen, &gpus);
  }
  // Some chips do not scale their GPU's frequency and only have the render node. The entry name
  // is never taken for a GPU's here: display controllers have DRM devices too.
  constexpr char kDrm[] = "/sys/class/drm";
  for (const std::string& name : root.List(kDrm)) {
    if (!name.starts_with("renderD")) continue;
    AddDevice(root, std::string(kDrm) + "/" + name + "/device", "", &seen, &gpus);
  }
  return gpus;
}

}  // namespace trine::detect
