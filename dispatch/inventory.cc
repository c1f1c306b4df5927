#include "dispatch/inventory.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugins/device_text.h"

namespace trine {
namespace {

// Names people type already, from other engines; other plugins keep their own.
std::string BackendName(const std::string& plugin, uint32_t index) {
  if (plugin == "cpu") return "CPU";
  if (plugin == "vulkan") return absl::StrCat("Vulkan", index);
  if (plugin == "hip") return absl::StrCat("ROCm", index);
  return absl::StrCat(plugin, index);
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

// Devices as the plugins see them, with the machine's GPU of the same PCI address beside them.
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
    // A device that names no pool must not be taken for one that shares system memory, nor for one
    // that has memory to itself where it has none.
    const bool unified = (found.info.flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0;
    if (device.memory_pool.empty()) device.memory_pool = unified ? "system" : device.backend_name;
    if (device.bandwidth_domain.empty()) device.bandwidth_domain = device.memory_pool;
    devices.push_back(std::move(device));
  }
  return devices;
}

// HIP serves AMD's discrete GPUs and, built for them, NVIDIA's; Vulkan serves the rest.
std::string WantedPlugin(const detect::GpuInfo& gpu) {
  const bool hip =
      gpu.kind == detect::GpuKind::kDiscrete && (gpu.vendor == "AMD" || gpu.vendor == "NVIDIA");
  return hip ? "hip" : "vulkan";
}

// GPUs that no plugin speaks of, with what could be done about it.
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

// Used devices first, by tier; then those that may be asked for, then the rest, in the same order.
// Numbers count within a tier.
void NameDevices(std::vector<InventoryDevice>* devices) {
  std::stable_sort(devices->begin(), devices->end(),
                   [](const InventoryDevice& a, const InventoryDevice& b) {
                     return std::tuple(!a.used, !a.on_request, TierOrder(a.tier)) <
                            std::tuple(!b.used, !b.on_request, TierOrder(b.tier));
                   });
  std::map<std::string, int> count;
  for (InventoryDevice& device : *devices) {
    if (!device.used && !device.on_request) continue;
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

// The CPU tier is what everything falls back on: without it nothing runs, so say where it was
// looked for.
std::string MissingCpu(const Inventory& inventory) {
  for (const InventoryDevice& device : inventory.devices) {
    if (device.used && device.tier == "cpu") return "";
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

}  // namespace

Inventory TakeInventory(detect::Machine machine, Registry registry) {
  Inventory inventory;
  inventory.machine = std::move(machine);
  inventory.registry = std::move(registry);
  inventory.devices = PluginDevices(inventory.machine, inventory.registry);
  AddUnseenGpus(inventory.machine, inventory.registry, &inventory.devices);
  NameDevices(&inventory.devices);
  inventory.pools = Pools(inventory);
  inventory.usable_tier = UsableTier(inventory.devices);
  if (std::string missing = MissingCpu(inventory); !missing.empty()) {
    inventory.problems.push_back(std::move(missing));
  }
  return inventory;
}

}  // namespace trine
