#include "runtime/base/machine_report.h"

#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dispatch/exec/segment.h"
#include "nlohmann/json.hpp"
#include "plugins/device_text.h"
#include "runtime/base/version.h"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

Json CpuJson(const detect::CpuInfo& cpu) {
  const detect::Topology& topology = cpu.topology;
  Json json = {{"arch", cpu.arch},
               {"vendor", cpu.vendor},
               {"model", cpu.model},
               {"packages", topology.packages},
               {"cores", topology.cores},
               {"threads", topology.threads},
               {"threads_per_core", topology.threads_per_core},
               {"usable_cpus", cpu.usable_cpus.size()},
               {"simd_level", cpu.simd_level}};
  if (cpu.cpu_quota) json["cpu_quota"] = *cpu.cpu_quota;
  json["features"] = Json::array();
  for (const detect::SimdFeature& feature : cpu.features) {
    Json f = {
        {"name", feature.name}, {"advertised", feature.advertised}, {"usable", feature.usable}};
    if (!feature.reason.empty()) f["reason"] = feature.reason;
    json["features"].push_back(std::move(f));
  }
  json["core_kinds"] = Json::array();
  for (const detect::CoreKind& kind : cpu.core_kinds) {
    json["core_kinds"].push_back({{"name", kind.name}, {"threads", kind.cpus.size()}});
  }
  json["caches"] = Json::array();
  for (const detect::CacheInfo& cache : topology.caches) {
    json["caches"].push_back({{"level", cache.level},
                              {"type", detect::CacheTypeName(cache.type)},
                              {"bytes", cache.size_bytes},
                              {"line_bytes", cache.line_bytes},
                              {"instances", cache.instances},
                              {"shared_by_threads", cache.shared_by_threads}});
  }
  json["numa_nodes"] = Json::array();
  for (const detect::NumaNode& node : topology.numa_nodes) {
    json["numa_nodes"].push_back(
        {{"id", node.id}, {"threads", node.cpus.size()}, {"memory_bytes", node.memory_bytes}});
  }
  return json;
}

Json MemoryJson(const detect::MemoryInfo& memory) {
  return {
      {"physical_bytes", memory.physical_bytes},     {"total_bytes", memory.total_bytes},
      {"available_bytes", memory.available_bytes},   {"limit_source", memory.limit_source},
      {"swap_total_bytes", memory.swap_total_bytes}, {"swap_free_bytes", memory.swap_free_bytes}};
}

Json GpuJson(const detect::GpuInfo& gpu) {
  Json json = {{"pci_address", gpu.pci_address},
               {"vendor_id", absl::StrCat(absl::Hex(gpu.vendor_id, absl::kZeroPad4))},
               {"device_id", absl::StrCat(absl::Hex(gpu.device_id, absl::kZeroPad4))},
               {"vendor", gpu.vendor},
               {"family", gpu.family},
               {"name", gpu.name},
               {"kind", detect::GpuKindName(gpu.kind)},
               {"kind_reason", gpu.kind_reason},
               {"counted", gpu.counted},
               {"counted_reason", gpu.counted_reason},
               {"driver", gpu.driver},
               {"render_node", gpu.render_node},
               {"gfx_target", gpu.gfx_target}};
  if (gpu.vram_bytes) json["vram_bytes"] = *gpu.vram_bytes;
  if (gpu.gtt_bytes) json["gtt_bytes"] = *gpu.gtt_bytes;
  if (gpu.bar_bytes) json["bar_bytes"] = *gpu.bar_bytes;
  if (gpu.numa_node) json["numa_node"] = *gpu.numa_node;
  return json;
}

Json PluginJson(const PluginFinding& plugin) {
  Json json = {{"path", plugin.path},
               {"found_by", plugin.found_by},
               {"used", plugin.accepted},
               {"reason", plugin.reason},
               {"probe_seconds", plugin.probe.seconds}};
  if (!plugin.probe.name.empty()) {
    json["name"] = plugin.probe.name;
    json["version"] = plugin.probe.version;
    json["abi"] =
        absl::StrCat(plugin.probe.abi_version >> 16, ".", plugin.probe.abi_version & 0xffff);
    json["numerics"] = plugin.probe.numerics_version;
  }
  if (!plugin.probe.log.empty()) json["log"] = plugin.probe.log;
  return json;
}

Json DeviceJson(const Inventory& inventory, const InventoryDevice& device) {
  Json json = {{"tier", device.tier},
               {"name", device.tier_name},
               {"backend_name", device.backend_name},
               {"chip", device.chip},
               {"used", device.used},
               {"reason", device.reason},
               {"memory_pool", device.memory_pool},
               {"bandwidth_domain", device.bandwidth_domain}};
  if (device.registry_device != InventoryDevice::kNone) {
    const DeviceFinding& found = inventory.registry.devices[device.registry_device];
    json["plugin"] = inventory.registry.plugins[found.plugin].probe.name;
    json["info"] = DeviceInfoToJson(found.info);
    if (device.used || device.on_request) {
      json["weights"] = WeightPathName(ExpectedWeightPath(found.info));
    }
  }
  if (device.machine_gpu != InventoryDevice::kNone) {
    json["gpu"] = inventory.machine.gpus[device.machine_gpu].pci_address;
  }
  return json;
}

Json MachineReport(const Inventory& inventory) {
  Json json = {{"version", Version()},
               {"abi", AbiVersionText()},
               {"numerics", TRINE_NUMERICS_VERSION},
               {"tier", detect::ComputeTierName(inventory.machine.tier)},
               {"usable_tier", detect::ComputeTierName(inventory.usable_tier)},
               {"cpu", CpuJson(inventory.machine.cpu)},
               {"memory", MemoryJson(inventory.machine.memory)}};
  for (const char* list :
       {"gpus", "devices", "memory_pools", "plugins", "searched", "notes", "problems"}) {
    json[list] = Json::array();
  }
  for (const auto& gpu : inventory.machine.gpus) json["gpus"].push_back(GpuJson(gpu));
  for (const auto& device : inventory.devices) {
    json["devices"].push_back(DeviceJson(inventory, device));
  }
  for (const auto& pool : inventory.pools) {
    json["memory_pools"].push_back({{"name", pool.name},
                                    {"total_bytes", pool.total_bytes},
                                    {"available_bytes", pool.available_bytes},
                                    {"limit", pool.limit},
                                    {"devices", pool.devices}});
  }
  for (const auto& plugin : inventory.registry.plugins)
    json["plugins"].push_back(PluginJson(plugin));
  for (const auto& folder : inventory.registry.folders) {
    json["searched"].push_back(
        {{"path", folder.path}, {"found_by", folder.found_by}, {"exists", folder.exists}});
  }
  for (const auto& note : inventory.machine.notes) json["notes"].push_back(note);
  for (const auto& note : inventory.registry.notes) json["notes"].push_back(note);
  for (const auto& problem : inventory.problems) json["problems"].push_back(problem);
  return json;
}

}  // namespace

Inventory DescribeMachine(const MachineOptions& options) {
  // Plugins belong to the machine that runs them: another machine's files say nothing of them.
  const bool here = options.root.empty() || options.root == "/";
  // Both are asked at once: plugins answer from processes of their own.
  std::future<Registry> plugins =
      std::async([&] { return here ? DiscoverPlugins(options.registry) : Registry(); });
  detect::Machine machine = detect::DetectMachine({options.root});
  Inventory inventory = TakeInventory(std::move(machine), plugins.get());
  if (!here) {
    for (InventoryDevice& device : inventory.devices) {
      if (inventory.machine.gpus[device.machine_gpu].counted) {
        device.reason = "described from files: plugins are not looked for";
      }
    }
    inventory.problems = {absl::StrCat("described from ", options.root,
                                       ": plugins are not looked for, so no device is in use")};
  }
  return inventory;
}

std::string MachineReportText(const Inventory& inventory) {
  return MachineReport(inventory).dump(2, ' ', false, nlohmann::detail::error_handler_t::replace);
}

}  // namespace trine
