#include "runtime/device_set.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "dispatch/find_device.h"
#include "plugins/library.h"
#include "runtime/worker_cpus.h"

namespace trine {
namespace {

std::string Devices(size_t count) {
  return absl::StrCat(count == 0 ? "no" : absl::StrCat(count), count == 1 ? " device" : " devices");
}

// A driver that finds its devices in a process of its own may miss them in this one, which has more
// in its address space: the commonest cause is a limit to that.
absl::Status FewerDevices(const ProbeResult& probed, uint32_t now) {
  std::string text =
      absl::StrCat(probed.name, " saw ", Devices(probed.devices.size()),
                   " when it was probed, and sees ", Devices(now), " in this process");
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    absl::StrAppend(&text, ", whose memory is limited to ", limit.rlim_cur >> 20,
                    " MiB (ulimit -v): a driver that can't be loaded for want of it shows none");
  }
  return absl::UnavailableError(text);
}

}  // namespace

uint32_t DefaultThreads(const detect::CpuInfo& cpu) {
  const uint32_t processors = UsableProcessors(cpu);
  if (cpu.topology.cores <= 0) return processors;
  return std::min(processors, static_cast<uint32_t>(cpu.topology.cores));
}

DeviceSet::DeviceSet(Inventory inventory, uint32_t threads, LogSink log, fault::FaultSpec faults)
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
  if (!faults.faults.empty()) {
    faults_ = std::make_unique<fault::Injector>(std::move(faults));
    std::vector<fault::DeviceNames> all;
    for (const InventoryDevice& d : inventory_.devices) {
      if (d.used || d.on_request) all.push_back({d.tier_name, d.backend_name});
    }
    for (const std::string& text : faults_->Unmatched(all)) {
      if (log) log(TRINE_LOG_WARNING, absl::StrCat("fault '", text, "': there is no such device"));
    }
  }
  host_ = std::make_unique<HostServices>(team, std::move(log));
}

std::vector<fault::DeviceNames> DeviceSet::NamesOf(size_t plugin) const {
  std::vector<fault::DeviceNames> names(inventory_.registry.plugins[plugin].probe.devices.size());
  for (const InventoryDevice& d : inventory_.devices) {
    if (d.registry_device == InventoryDevice::kNone) continue;
    const DeviceFinding& finding = inventory_.registry.devices[d.registry_device];
    if (finding.plugin != plugin || finding.index >= names.size()) continue;
    names[finding.index] = {d.tier_name, d.backend_name};
  }
  return names;
}

BackendWrapper DeviceSet::Wrapper(size_t plugin) const {
  if (faults_ == nullptr) return nullptr;
  std::vector<fault::DeviceNames> names = NamesOf(plugin);
  const bool any = std::any_of(names.begin(), names.end(),
                               [&](const fault::DeviceNames& n) { return faults_->Concerns(n); });
  if (!any) return nullptr;
  return [this, names = std::move(names)](const trine_plugin& table, const trine_host* host,
                                          trine_backend* backend) {
    return faults_->Wrap(table, host, backend, names);
  };
}

absl::StatusOr<std::string> DeviceSet::Resolve(const std::string& name) const {
  const auto device = FindDevice(inventory_, name);
  if (!device.ok()) return device.status();
  return (*device)->tier_name;
}

absl::StatusOr<std::shared_ptr<Backend>> DeviceSet::OpenBackend(size_t plugin) {
  const std::string& path = inventory_.registry.plugins[plugin].path;
  std::shared_ptr<Backend>& backend = backends_[path];
  if (backend != nullptr) return backend;
  auto library = PluginLibrary::Load(path);
  if (!library.ok()) return library.status();
  auto opened = Backend::Open(*std::move(library), *host_, "", Wrapper(plugin));
  if (!opened.ok()) return opened.status();
  backend = *std::move(opened);
  return backend;
}

absl::StatusOr<std::shared_ptr<Device>> DeviceSet::Open(const std::string& name) {
  const auto found = FindDevice(inventory_, name);
  if (!found.ok()) return found.status();
  const InventoryDevice& device = **found;
  if (const auto open = devices_.find(device.tier_name); open != devices_.end()) {
    return open->second;
  }
  const DeviceFinding& finding = inventory_.registry.devices[device.registry_device];
  const PluginFinding& plugin = inventory_.registry.plugins[finding.plugin];
  auto backend = OpenBackend(finding.plugin);
  if (!backend.ok()) return backend.status();
  if (const uint32_t now = (*backend)->device_count(); finding.index >= now) {
    return FewerDevices(plugin.probe, now);
  }
  auto opened = Device::Open(*std::move(backend), finding.index, device.tier_name);
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
