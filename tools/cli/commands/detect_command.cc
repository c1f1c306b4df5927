// trine detect: shows what the machine has, what of it is used, and why.
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dispatch/exec/segment.h"
#include "plugins/device_text.h"
#include "runtime/base/machine_report.h"
#include "runtime/base/version.h"
#include "runtime/placement/calibration.h"
#include "runtime/placement/device_set.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/report/text_table.h"

namespace trine {
namespace {

std::string Or(const std::string& text, const char* otherwise) {
  return text.empty() ? otherwise : text;
}

// Removes control characters: a file's name may hold some, and a terminal must not obey them.
std::string Printable(const std::string& text) { return FieldText(text.data(), text.size()); }

std::string CpuText(const detect::CpuInfo& cpu) {
  const detect::Topology& t = cpu.topology;
  std::string text = absl::StrCat("CPU     ", Or(cpu.model, "unknown model"), " (",
                                  Or(cpu.vendor, "unknown vendor"), ", ",
                                  Or(cpu.arch, "unknown architecture"), ")\n");
  absl::StrAppend(&text, "        ", t.packages, t.packages == 1 ? " package, " : " packages, ",
                  t.cores, t.cores == 1 ? " core, " : " cores, ", t.threads,
                  t.threads == 1 ? " thread" : " threads", t.threads_per_core > 1 ? " (SMT)" : "",
                  ", ", cpu.usable_cpus.size(), " usable here");
  if (cpu.cpu_quota) absl::StrAppend(&text, ", quota of ", *cpu.cpu_quota, " processors");
  absl::StrAppend(&text, "\n");
  std::vector<std::string> caches;
  for (const detect::CacheInfo& cache : t.caches) {
    const char* suffix = cache.type == detect::CacheType::kData          ? "d"
                         : cache.type == detect::CacheType::kInstruction ? "i"
                                                                         : "";
    caches.push_back(absl::StrCat("L", cache.level, suffix, " ", FormatBytes(cache.size_bytes),
                                  cache.instances > 1 ? absl::StrCat(" x ", cache.instances) : ""));
  }
  if (!caches.empty()) absl::StrAppend(&text, "        ", absl::StrJoin(caches, ", "), "\n");
  if (t.numa_nodes.size() > 1)
    absl::StrAppend(&text, "        ", t.numa_nodes.size(), " NUMA nodes\n");

  std::vector<std::string> usable, refused;
  for (const detect::SimdFeature& feature : cpu.features) {
    if (feature.usable) {
      usable.push_back(feature.name);
    } else if (feature.advertised) {
      refused.push_back(absl::StrCat(feature.name, " (", feature.reason, ")"));
    }
  }
  absl::StrAppend(&text, "SIMD    ", cpu.simd_level, ": ",
                  Or(absl::StrJoin(usable, " "), "nothing more"), "\n");
  if (!refused.empty()) {
    absl::StrAppend(&text, "        there but not usable: ", absl::StrJoin(refused, ", "), "\n");
  }
  return text;
}

std::string DeviceTable(const Inventory& inventory) {
  TextTable table({"name", "backend", "tier", "chip", "memory", "pci", "used", "why"});
  for (const InventoryDevice& device : inventory.devices) {
    std::string memory = "-", pci = "-";
    if (device.registry_device != InventoryDevice::kNone) {
      const trine_device_info& info = inventory.registry.devices[device.registry_device].info;
      memory = FormatBytes(info.memory_total);
      pci = Or(FieldText(info.pci_id, sizeof(info.pci_id)), "-");
    } else if (device.machine_gpu != InventoryDevice::kNone) {
      const detect::GpuInfo& gpu = inventory.machine.gpus[device.machine_gpu];
      pci = Or(gpu.pci_address, "-");
      if (gpu.vram_bytes) memory = FormatBytes(*gpu.vram_bytes);
    }
    table.Add({Or(device.tier_name, "-"), Or(device.backend_name, "-"), device.tier,
               Or(device.chip, "unknown"), memory, pci, device.used ? "yes" : "no", device.reason});
  }
  return table.empty() ? "  none\n" : table.Format();
}

// Shows how each usable device would get weights that it reads in the layout of the file.
std::string WeightTable(const Inventory& inventory) {
  TextTable table({"device", "weights"});
  for (const InventoryDevice& device : inventory.devices) {
    if (device.registry_device == InventoryDevice::kNone) continue;
    if (!device.used && !device.on_request) continue;
    const trine_device_info& info = inventory.registry.devices[device.registry_device].info;
    table.Add({device.tier_name, DescribeWeightPath(info)});
  }
  return table.empty() ? "" : absl::StrCat("\nWeights that are not packed\n", table.Format());
}

// Shows which usable devices `trine calibrate` has measured with as many threads as are the
// default.
std::string CalibrationTable(const Inventory& inventory) {
  const auto calibration = Calibration::Read(Calibration::DefaultPath());
  if (!calibration.ok()) {
    return absl::StrCat("  ", Printable(std::string(calibration.status().message())), "\n");
  }
  const uint32_t threads = DefaultThreads(inventory.machine.cpu);
  TextTable table({"device", "measured", "remark"});
  for (const InventoryDevice& device : inventory.devices) {
    if (device.registry_device == InventoryDevice::kNone) continue;
    if (!device.used && !device.on_request) continue;
    const MeasuredCosts* found = calibration->Find(CalibrationKey(inventory, device, threads));
    std::string remark = found == nullptr ? "its times are guessed until `trine calibrate`" : "-";
    if (found != nullptr && !found->trust.busy.empty()) {
      remark = absl::StrCat("on a busy machine: ", found->trust.busy);
    }
    table.Add({device.tier_name, found != nullptr ? "yes" : "no", remark});
  }
  return table.empty() ? "  none\n" : table.Format();
}

std::string PluginTable(const Registry& registry) {
  TextTable table({"plugin", "version", "abi", "used", "why", "file"});
  for (const PluginFinding& plugin : registry.plugins) {
    const ProbeResult& probe = plugin.probe;
    const std::string abi =
        probe.name.empty() ? "-"
                           : absl::StrCat(probe.abi_version >> 16, ".", probe.abi_version & 0xffff);
    table.Add({Or(probe.name, "-"), Or(probe.version, "-"), abi, plugin.accepted ? "yes" : "no",
               plugin.reason, absl::StrCat(Printable(plugin.path), " (", plugin.found_by, ")")});
  }
  std::string text = table.empty() ? "  none\n" : table.Format();
  for (const PluginFinding& plugin : registry.plugins) {
    for (const std::string& line : plugin.probe.log) {
      absl::StrAppend(&text, "  ", plugin.probe.name, " says: ", line, "\n");
    }
  }
  return text;
}

// `this_machine`: the inventory is of the running machine, whose devices may be calibrated.
std::string FormatInventory(const Inventory& inventory, bool this_machine) {
  const detect::Machine& machine = inventory.machine;
  std::string text = absl::StrCat(VersionDescription(), "\n\n");
  absl::StrAppend(&text, "Tiers   ", detect::ComputeTierName(machine.tier), " by the hardware, ",
                  detect::ComputeTierName(inventory.usable_tier), " usable with these plugins\n");
  absl::StrAppend(&text, CpuText(machine.cpu));
  absl::StrAppend(&text, "Memory  ", FormatBytes(machine.memory.total_bytes), ", ",
                  FormatBytes(machine.memory.available_bytes), " available");
  if (!machine.memory.limit_source.empty()) {
    absl::StrAppend(&text, " (", machine.memory.limit_source, ")");
  }
  absl::StrAppend(&text, "\n\nDevices\n", DeviceTable(inventory), "\nMemory pools\n");
  TextTable pools({"pool", "total", "available", "devices"});
  for (const MemoryPool& pool : inventory.pools) {
    pools.Add({pool.name, FormatBytes(pool.total_bytes), FormatBytes(pool.available_bytes),
               Or(absl::StrJoin(pool.devices, ", "), "-")});
  }
  absl::StrAppend(&text, pools.Format(), WeightTable(inventory));
  if (this_machine) absl::StrAppend(&text, "\nCalibration\n", CalibrationTable(inventory));
  absl::StrAppend(&text, "\nPlugins\n", PluginTable(inventory.registry));
  const auto list = [&](const char* title, const std::vector<std::string>& lines) {
    if (!lines.empty()) absl::StrAppend(&text, "\n", title, "\n");
    for (const std::string& line : lines) absl::StrAppend(&text, "  ", line, "\n");
  };
  std::vector<std::string> notes = machine.notes;
  notes.insert(notes.end(), inventory.registry.notes.begin(), inventory.registry.notes.end());
  list("Notes", notes);
  list("Problems", inventory.problems);
  return text;
}

struct DetectArguments {
  bool json = false;
  MachineOptions machine;
};

int Detect(const DetectArguments& arguments) {
  const Inventory inventory = DescribeMachine(arguments.machine);
  if (const std::string& unused = inventory.registry.unused_options; !unused.empty()) {
    return Complain(absl::InvalidArgumentError(unused));
  }
  const std::string text = arguments.json
                               ? MachineReportText(inventory) + "\n"
                               : FormatInventory(inventory, arguments.machine.root.empty());
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

void AddDetectCommand(Command app, Run* run) {
  auto [command, a] = NewCommand<DetectArguments>(
      app, run, Detect, "detect",
      "Show the machine's tiers, devices, memory and plugins, and why each is used or not");
  command.AddFlag("--json", a->json, "Print JSON (docs/detect.md) instead of tables");
  AddPluginOptions(command, &a->machine.registry);
  command
      .AddOption("--root", a->machine.root,
                 "Describe the machine whose /proc and /sys lie in this folder, not this one")
      .ExistingFolder();
}

}  // namespace trine
