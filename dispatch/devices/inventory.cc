#include "dispatch/devices/inventory.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "plugins/device_text.h"

namespace trine {
namespace {

// Returns a plugin's name with something after it that keeps a number apart: "vendor2" and a number
// would look like another device of "vendor". Of long names returns the beginning, because names of
// devices have at most 31 characters in the C API.
std::string NumberedStem(const std::string& plugin) {
  constexpr size_t kMost = 27;
  std::string stem = plugin.substr(0, kMost);
  const char last = stem.empty() ? 'x' : stem.back();
  if (last == '-') return stem + "_";
  return absl::ascii_isdigit(static_cast<unsigned char>(last)) ? stem + "-" : stem;
}

// Returns the names that users of other engines know; other plugins keep their own names.
std::string BackendName(const std::string& plugin, uint32_t index) {
  if (plugin == "cpu") return "CPU";
  if (plugin == "vulkan") return absl::StrCat("Vulkan", index);
  if (plugin == "hip") return absl::StrCat("ROCm", index);
  return absl::StrCat(NumberedStem(plugin), index);
}

int TierOrder(const std::string& tier) {
  return tier == "cpu" ? 0 : tier == "igpu" ? 1 : tier == "dgpu" ? 2 : 3;
}

std::string ChipName(const detect::GpuInfo& gpu) {
  std::vector<std::string> parts;
  if (!absl::StartsWith(gpu.name, gpu.vendor)) parts.push_back(gpu.vendor);
  if (!gpu.name.empty()) parts.push_back(gpu.name);
  if (!gpu.family.empty()) parts.push_back(absl::StrCat("(", gpu.family, ")"));
  return absl::StrJoin(parts, " ");
}

// Lists the devices that plugins found, each with the machine's GPU at the same PCI address.
std::vector<InventoryDevice> PluginDevices(const detect::Machine& machine,
                                           const Registry& registry) {
  std::vector<InventoryDevice> devices;
  for (size_t i = 0; i < registry.devices.size(); ++i) {
    const DeviceFinding& found = registry.devices[i];
    InventoryDevice device;
    device.backend_name = BackendName(registry.plugins[found.plugin].probe.name, found.index);
    device.chip = FieldText(found.info.name);
    device.tier = TierName(found.info.tier);
    device.used = found.used;
    device.on_request = found.on_request;
    device.reason = found.reason;
    device.registry_device = i;
    device.memory_pool = FieldText(found.info.memory_pool);
    device.bandwidth_domain = FieldText(found.info.bandwidth_domain);
    const std::string pci = FieldText(found.info.pci_id);
    for (size_t g = 0; !pci.empty() && g < machine.gpus.size(); ++g) {
      if (machine.gpus[g].pci_address == pci) device.machine_gpu = g;
    }
    // A device that names no pool shares system memory only if its memory is unified; otherwise it
    // gets its own pool.
    const bool unified = (found.info.flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0;
    if (device.memory_pool.empty()) device.memory_pool = unified ? "system" : device.backend_name;
    if (device.bandwidth_domain.empty()) device.bandwidth_domain = device.memory_pool;
    devices.push_back(std::move(device));
  }
  return devices;
}

// Returns the plugin that should serve a GPU: HIP for AMD's discrete GPUs and, if it is built for
// them, NVIDIA's; Vulkan for the rest.
std::string WantedPlugin(const detect::GpuInfo& gpu) {
  const bool hip =
      gpu.kind == detect::GpuKind::kDiscrete && (gpu.vendor == "AMD" || gpu.vendor == "NVIDIA");
  return hip ? "hip" : "vulkan";
}

// Adds the GPUs that no plugin found, with what could be done about it.
void AddUnseenGpus(const detect::Machine& machine, const Registry& registry,
                   std::vector<InventoryDevice>* devices) {
  for (size_t g = 0; g < machine.gpus.size(); ++g) {
    const bool seen = std::any_of(devices->begin(), devices->end(),
                                  [&](const InventoryDevice& d) { return d.machine_gpu == g; });
    if (seen) continue;
    const detect::GpuInfo& gpu = machine.gpus[g];
    InventoryDevice device;
    device.chip = ChipName(gpu);
    device.machine_gpu = g;
    device.tier = gpu.kind == detect::GpuKind::kIntegrated ? "igpu"
                  : gpu.kind == detect::GpuKind::kDiscrete ? "dgpu"
                                                           : "other";
    const std::string wanted = WantedPlugin(gpu);
    const auto plugin =
        std::find_if(registry.plugins.begin(), registry.plugins.end(), [&](const PluginFinding& p) {
          return p.probe.name == wanted || p.path.find("backend-" + wanted) != std::string::npos;
        });
    if (!gpu.counted) {
      device.reason = gpu.counted_reason;
    } else if (plugin == registry.plugins.end()) {
      device.reason = absl::StrCat("no plugin for it is installed (it would be ", wanted, ")");
    } else if (!plugin->accepted) {
      device.reason = absl::StrCat("the ", wanted, " plugin is not used: ", plugin->reason);
    } else {
      device.reason = absl::StrCat("the ", wanted, " plugin does not see it",
                                   gpu.driver.empty() ? ": no kernel driver is bound to it" : "");
    }
    devices->push_back(std::move(device));
  }
}

// Returns "igpu" for "igpu0".
std::string TierOf(const std::string& name) {
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

// Returns what the names of the device and of others like it begin with: its tier or, outside of
// the tiers, its plugin's name.
std::string NameStem(const Registry& registry, const InventoryDevice& device) {
  if (device.tier != "other" || device.registry_device == InventoryDevice::kNone) {
    return device.tier;
  }
  const DeviceFinding& found = registry.devices[device.registry_device];
  const std::string& stem = registry.plugins[found.plugin].probe.name;  // of a-z, 0-9 and "-"
  const std::string tier = TierOf(stem);
  // The name must not be taken for a tier's.
  if (tier == "cpu" || tier == "igpu" || tier == "dgpu" || tier == "other") return device.tier;
  return NumberedStem(stem);
}

// Sorts used devices first, then those used on request, then the rest, each by tier. Numbers the
// devices of a tier in this order, and other devices as their plugin does.
void NameDevices(const Registry& registry, std::vector<InventoryDevice>* devices) {
  std::stable_sort(devices->begin(), devices->end(),
                   [](const InventoryDevice& a, const InventoryDevice& b) {
                     return std::tuple(!a.used, !a.on_request, TierOrder(a.tier)) <
                            std::tuple(!b.used, !b.on_request, TierOrder(b.tier));
                   });
  std::map<std::string, int> count;
  std::set<std::string> taken;
  for (InventoryDevice& device : *devices) {
    if (!device.used && !device.on_request) continue;
    if (const std::string stem = NameStem(registry, device); stem != device.tier) {
      // Long names of two plugins may begin alike.
      uint32_t number = registry.devices[device.registry_device].index;
      while (!taken.insert(absl::StrCat(stem, number)).second) ++number;
      device.tier_name = absl::StrCat(stem, number);
      continue;
    }
    const int n = count[device.tier]++;
    device.tier_name = device.tier == "cpu" && n == 0 ? "cpu" : absl::StrCat(device.tier, n);
  }
}

std::vector<MemoryPool> Pools(const Inventory& inventory) {
  const detect::MemoryInfo& memory = inventory.machine.memory;
  std::vector<MemoryPool> pools = {
      {"system", memory.total_bytes, memory.available_bytes, memory.limit_source, {}}};
  for (const InventoryDevice& device : inventory.devices) {
    if (!device.used) continue;
    auto pool = std::find_if(pools.begin(), pools.end(),
                             [&](const MemoryPool& p) { return p.name == device.memory_pool; });
    if (pool == pools.end()) {
      const trine_device_info& info = inventory.registry.devices[device.registry_device].info;
      pools.push_back({device.memory_pool, info.memory_total, info.memory_free, "", {}});
      pool = pools.end() - 1;
    }
    pool->devices.push_back(device.tier_name);
  }
  return pools;
}

detect::ComputeTier UsableTier(const std::vector<InventoryDevice>& devices) {
  const auto has = [&](const char* tier) {
    return std::any_of(devices.begin(), devices.end(),
                       [&](const InventoryDevice& d) { return d.used && d.tier == tier; });
  };
  const bool igpu = has("igpu"), dgpu = has("dgpu");
  return igpu && dgpu ? detect::ComputeTier::kCpuIgpuDgpu
         : igpu       ? detect::ComputeTier::kCpuIgpu
         : dgpu       ? detect::ComputeTier::kCpuDgpu
                      : detect::ComputeTier::kCpuOnly;
}

// Says that there is no CPU device, and where its plugin was looked for: no model can run without
// it, because every placement falls back on the CPU. Returns "" if there is one.
std::string MissingCpu(const Inventory& inventory) {
  for (const InventoryDevice& device : inventory.devices) {
    if (device.used && device.tier == "cpu") return "";
  }
  for (const InventoryDevice& device : inventory.devices) {
    if (device.tier != "cpu") continue;
    return absl::StrCat("no CPU backend is usable, so no model can run: ", device.chip, ": ",
                        device.reason);
  }
  std::vector<std::string> looked;
  for (const SearchedFolder& folder : inventory.registry.folders) {
    looked.push_back(absl::StrCat(folder.path, folder.exists ? "" : " (absent)"));
  }
  std::string text = "no CPU backend is usable, so no model can run";
  for (const PluginFinding& plugin : inventory.registry.plugins) {
    if (plugin.path.find("backend-cpu") != std::string::npos && !plugin.accepted) {
      return absl::StrCat(text, ": ", plugin.path, ": ", plugin.reason);
    }
  }
  return absl::StrCat(text, ": libtrine-backend-cpu.so was looked for in ",
                      looked.empty() ? "no folder" : absl::StrJoin(looked, ", "));
}

// The most plugins in a text of one line. A folder may hold any number of them.
constexpr size_t kMostPlugins = 3;

std::string PluginName(const PluginFinding& plugin) {
  return !plugin.probe.name.empty() ? plugin.probe.name : NameOfFile(plugin.path);
}

// Returns why a plugin offers no device; "" if it offers one, or if another plugin of the same name
// was preferred.
std::string WhyIdle(const Registry& registry, size_t plugin) {
  const PluginFinding& found = registry.plugins[plugin];
  if (!found.accepted) return found.probe.status.ok() ? "" : found.reason;
  std::vector<std::string> reasons;
  for (const DeviceFinding& device : registry.devices) {
    if (device.plugin != plugin) continue;
    if (device.used || device.on_request) return "";
    reasons.push_back(device.reason);
  }
  return reasons.empty() ? found.reason : absl::StrJoin(reasons, ", ");
}

std::string Describe(const InventoryDevice& d) {
  const std::string own = OwnName(d);
  return own.empty() || own == d.tier_name ? d.tier_name
                                           : absl::StrCat(d.tier_name, " (", own, ")");
}

}  // namespace

Inventory TakeInventory(detect::Machine machine, Registry registry) {
  Inventory inventory;
  inventory.machine = std::move(machine);
  inventory.registry = std::move(registry);
  inventory.devices = PluginDevices(inventory.machine, inventory.registry);
  AddUnseenGpus(inventory.machine, inventory.registry, &inventory.devices);
  NameDevices(inventory.registry, &inventory.devices);
  inventory.pools = Pools(inventory);
  inventory.usable_tier = UsableTier(inventory.devices);
  if (std::string missing = MissingCpu(inventory); !missing.empty()) {
    inventory.problems.push_back(std::move(missing));
  }
  return inventory;
}

std::string OwnName(const InventoryDevice& device) {
  const bool by_itself = device.used || !device.on_request;
  return absl::StrCat(device.backend_name, by_itself ? "" : ", only where it is named");
}

std::string IdlePlugins(const Inventory& inventory) {
  const Registry& registry = inventory.registry;
  std::string text;
  size_t count = 0;
  for (size_t i = 0; i < registry.plugins.size(); ++i) {
    const std::string why = WhyIdle(registry, i);
    if (why.empty() || ++count > kMostPlugins) continue;
    absl::StrAppend(&text, "; ", PluginName(registry.plugins[i]), ": ", why);
  }
  if (count > kMostPlugins) {
    absl::StrAppend(&text, "; `trine detect` has ", count - kMostPlugins, " more");
  }
  return text;
}

std::vector<InventoryDevice> DevicesTooFast(const Inventory& inventory) {
  std::vector<InventoryDevice> found;
  for (const InventoryDevice& d : inventory.devices) {
    if (d.registry_device == InventoryDevice::kNone) continue;
    if (inventory.registry.devices[d.registry_device].too_fast) found.push_back(d);
  }
  return found;
}

std::string OnRequestOnly(const Inventory& inventory) {
  std::string text;
  for (const InventoryDevice& d : inventory.devices) {
    if (d.used || !d.on_request) continue;
    absl::StrAppend(&text, "; ", d.tier_name, " is used only where -ts or -dev names it");
  }
  return text;
}

std::string UsableDevices(const Inventory& inventory) {
  std::vector<std::string> there;
  for (const InventoryDevice& d : inventory.devices) {
    if (d.used || d.on_request) there.push_back(Describe(d));
  }
  return absl::StrJoin(there, ", ");
}

absl::StatusOr<const InventoryDevice*> FindDevice(const Inventory& inventory,
                                                  const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  const InventoryDevice* unused = nullptr;
  for (const InventoryDevice& d : inventory.devices) {
    // "igpu" stands for "igpu0".
    const bool named = lower == d.tier_name || name == d.backend_name ||
                       absl::StrCat(NumberedStem(lower), "0") == d.tier_name ||
                       absl::StrCat(lower, "0") == d.tier_name;
    if (d.used || d.on_request) {
      if (named) return &d;
    } else if (unused == nullptr && (name == d.backend_name || TierOf(lower) == d.tier)) {
      unused = &d;
    }
  }
  if (unused != nullptr) {
    return absl::NotFoundError(absl::StrCat("device '", name, "' is not used: ", unused->reason));
  }
  const std::string there = UsableDevices(inventory);
  if (there.empty() && !inventory.problems.empty()) {
    return absl::NotFoundError(inventory.problems.front());
  }
  return absl::NotFoundError(
      absl::StrCat("no device is called '", name, "'; there are: ", there, IdlePlugins(inventory)));
}

}  // namespace trine
