#include "runtime/device_set.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugins/library.h"
#include "runtime/worker_cpus.h"

namespace trine {

uint32_t DefaultThreads(const detect::CpuInfo& cpu) {
  const uint32_t processors = UsableProcessors(cpu);
  if (cpu.topology.cores <= 0) return processors;
  return std::min(processors, static_cast<uint32_t>(cpu.topology.cores));
}

DeviceSet::DeviceSet(Inventory inventory, uint32_t threads, LogSink log)
    : inventory_(std::move(inventory)) {
  ThreadTeamOptions team;
  const detect::CpuInfo& cpu = inventory_.machine.cpu;
  team.workers = threads != 0 ? threads : DefaultThreads(cpu);
  team.processors = UsableProcessors(cpu);
  // Bound workers can't make way for what else runs: worth it where memory is nearer to some.
  const char* pin = std::getenv("TRINE_PIN");
  const bool bind =
      pin != nullptr ? std::string_view(pin) != "0" : cpu.topology.numa_nodes.size() > 1;
  if (bind) team.cpus = WorkerCpus(cpu, team.workers);
  host_ = std::make_unique<HostServices>(team, std::move(log));
}

absl::StatusOr<const InventoryDevice*> DeviceSet::Find(const std::string& name) const {
  std::vector<std::string> names;
  for (const InventoryDevice& d : inventory_.devices) {
    // "igpu" is the first one of its kind.
    const bool named = absl::AsciiStrToLower(name) == d.tier_name || name == d.backend_name ||
                       absl::StrCat(name, "0") == d.tier_name;
    if (named && (d.used || d.on_request)) return &d;
    if (d.used) {
      names.push_back(d.backend_name == d.tier_name || d.backend_name.empty()
                          ? d.tier_name
                          : absl::StrCat(d.tier_name, " (", d.backend_name, ")"));
    } else if (named || name == d.tier) {
      return absl::NotFoundError(absl::StrCat("device '", name, "' is not used: ", d.reason));
    }
  }
  if (names.empty() && !inventory_.problems.empty()) {
    return absl::NotFoundError(inventory_.problems.front());
  }
  return absl::NotFoundError(
      absl::StrCat("no device is called '", name, "'; there are: ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<std::string> DeviceSet::Resolve(const std::string& name) const {
  const auto device = Find(name);
  if (!device.ok()) return device.status();
  return (*device)->tier_name;
}

absl::StatusOr<std::shared_ptr<Device>> DeviceSet::Open(const std::string& name) {
  const auto found = Find(name);
  if (!found.ok()) return found.status();
  const InventoryDevice& device = **found;
  if (const auto open = devices_.find(device.tier_name); open != devices_.end()) {
    return open->second;
  }
  const DeviceFinding& finding = inventory_.registry.devices[device.registry_device];
  const std::string& path = inventory_.registry.plugins[finding.plugin].path;
  std::shared_ptr<Backend>& backend = backends_[path];
  if (backend == nullptr) {
    auto library = PluginLibrary::Load(path);
    if (!library.ok()) return library.status();
    auto opened = Backend::Open(*std::move(library), *host_);
    if (!opened.ok()) return opened.status();
    backend = *std::move(opened);
  }
  auto opened = Device::Open(backend, finding.index);
  if (!opened.ok()) return opened.status();
  return devices_[device.tier_name] = *std::move(opened);
}

std::vector<std::string> DeviceSet::GpuNames() const {
  std::vector<std::string> names;
  for (const char* tier : {"dgpu", "igpu"}) {
    for (const InventoryDevice& d : inventory_.devices) {
      if (d.used && d.tier == tier) names.push_back(d.tier_name);
    }
  }
  return names;
}

}  // namespace trine
