#include "runtime/placement/device_set.h"

#include <sys/resource.h>

#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugins/library.h"
#include "runtime/placement/team_choice.h"

namespace trine {
namespace {

std::string Devices(size_t count) {
  return absl::StrCat(count == 0 ? "no" : absl::StrCat(count), count == 1 ? " device" : " devices");
}

// Returns the error for a plugin that has fewer devices in this process than in its probe's
// process. The commonest cause is a limit on address space, of which this process uses more.
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

DeviceSet::DeviceSet(const Inventory& inventory, uint32_t threads, const LogSink& log)
    : DeviceSet(inventory, MakeOwnTeam(threads, inventory.machine.cpu, log), log) {}

DeviceSet::DeviceSet(Inventory inventory, std::shared_ptr<ThreadTeam> team, LogSink log,
                     fault::FaultSpec faults)
    : inventory_(std::move(inventory)) {
  if (!faults.faults.empty()) {
    faults_ = std::make_unique<fault::Injector>(std::move(faults));
    for (const InventoryDevice& d : inventory_.devices) {
      if (d.used || d.on_request) faulty_.push_back({d.tier_name, d.backend_name});
    }
    for (const std::string& text : faults_->Unmatched(faulty_)) {
      if (log) log(TRINE_LOG_WARNING, absl::StrCat("fault '", text, "': there is no such device"));
    }
  }
  host_ = std::make_shared<HostServices>(std::move(log), std::move(team));
}

DeviceSet::~DeviceSet() {
  // Faults may also strike when devices and backends are closed.
  devices_.clear();
  backends_.clear();
  if (faults_ == nullptr) return;
  for (const std::string& sentence : faults_->NeverHappened(faulty_)) {
    host_->Say(TRINE_LOG_WARNING, sentence);
  }
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

std::function<absl::StatusOr<DeviceSet::Opened>()> DeviceSet::Opener(
    const InventoryDevice& device, std::shared_ptr<OpenedBackend> first) const {
  const DeviceFinding& finding = inventory_.registry.devices[device.registry_device];
  const PluginFinding& plugin = inventory_.registry.plugins[finding.plugin];
  const auto known = backends_.find(plugin.path);
  return [backend = known == backends_.end() ? nullptr : known->second, path = plugin.path,
          options = plugin.options, probe = plugin.probe, index = finding.index,
          name = device.tier_name, trusted = finding.failed_test.empty(), host = host_.get(),
          wrapper = Wrapper(finding.plugin), first = std::move(first)]() -> absl::StatusOr<Opened> {
    Opened opened{backend, nullptr};
    if (opened.backend == nullptr) {
      auto library = PluginLibrary::Load(path);
      if (!library.ok()) return library.status();
      auto open = Backend::Open(*std::move(library), *host, options, wrapper);
      if (!open.ok()) return open.status();
      opened.backend = *std::move(open);
      const std::lock_guard lock(first->mutex);
      first->backend = opened.backend;
    }
    if (const uint32_t now = opened.backend->device_count(); index >= now) {
      return FewerDevices(probe, now);
    }
    auto device = Device::Open(opened.backend, index, name);
    if (!device.ok()) return device.status();
    opened.device = *std::move(device);
    if (!trusted) opened.device->Distrust();
    return opened;
  };
}

const std::string& DeviceSet::PluginOf(const std::string& tier_name) const {
  static const std::string kNone;
  const auto found =
      std::find_if(inventory_.devices.begin(), inventory_.devices.end(),
                   [&](const InventoryDevice& d) { return d.tier_name == tier_name; });
  if (found == inventory_.devices.end() || found->registry_device == InventoryDevice::kNone) {
    return kNone;
  }
  const DeviceFinding& finding = inventory_.registry.devices[found->registry_device];
  return inventory_.registry.plugins[finding.plugin].path;
}

absl::StatusOr<std::shared_ptr<Device>> DeviceSet::Open(const std::string& name,
                                                        std::chrono::milliseconds most) {
  const auto found = FindDevice(inventory_, name);
  if (!found.ok()) return found.status();
  const InventoryDevice& device = **found;
  const std::string& tier_name = device.tier_name;
  if (const auto open = devices_.find(tier_name); open != devices_.end()) return open->second;
  if (HangsIn(tier_name)) {
    return OnDevice(tier_name,
                    absl::UnavailableError("something that was given up is still in it"));
  }
  const std::string& plugin = PluginOf(tier_name);
  const auto first = std::make_shared<OpenedBackend>();
  auto opener = Opener(device, first);
  absl::StatusOr<Opened> opened;
  if (!IsWatched(tier_name)) {
    opened = opener();
  } else {
    Watched<absl::StatusOr<Opened>> work(std::move(opener));
    const std::chrono::milliseconds limit = std::min(most, limit_);
    if (!work.WaitFor(limit) && work.Leave()) {
      {
        const std::lock_guard lock(first->mutex);
        if (first->backend != nullptr) backends_[plugin] = first->backend;
      }
      // If the plugin itself hangs, its other devices would hang too.
      left_.push_back({{tier_name}, backends_.count(plugin) == 0 ? plugin : "", work.life()});
      return TooLong(tier_name, "being opened", limit);
    }
    opened = work.Take();
  }
  if (!opened.ok()) return opened.status();
  backends_[plugin] = std::move(opened->backend);
  return devices_[tier_name] = std::move(opened->device);
}

void DeviceSet::Forget(const std::string& tier_name) {
  const auto found = devices_.find(tier_name);
  if (found == devices_.end()) return;
  std::shared_ptr<Device> device = std::move(found->second);
  devices_.erase(found);
  if (!IsWatched(tier_name)) return;
  // Closes the device, unless it has other users.
  Watched<absl::Status> work([device = std::move(device)]() mutable {
    device.reset();
    return absl::OkStatus();
  });
  if (!work.WaitFor(closing_limit()) && work.Leave()) {
    left_.push_back({{tier_name}, "", work.life()});
  }
}

void DeviceSet::ForgetUnused(const std::set<std::string>& used) {
  std::vector<std::string> unused;
  for (const auto& [name, device] : devices_) {
    if (used.count(name) == 0) unused.push_back(name);
  }
  for (const std::string& name : unused) Forget(name);
}

std::string DeviceSet::Hung(const std::vector<NamedDevice>& devices) const {
  const auto now = CallClock::Clock::now();
  for (const NamedDevice& d : devices) {
    if (d.device == nullptr || !IsWatched(d.name)) continue;
    const auto since = d.device->calls().Oldest();
    if (since && now - *since > limit_) return d.name;
  }
  return "";
}

absl::Status DeviceSet::TooLong(const std::string& device, const char* what,
                                std::chrono::milliseconds limit) const {
  return OnDevice(device, absl::DeadlineExceededError(
                              absl::StrCat(device, " has not come back from ", what, " in ",
                                           absl::FormatDuration(absl::FromChrono(limit)))));
}

std::vector<std::string> DeviceSet::InACall(const std::vector<std::string>& devices,
                                            std::chrono::milliseconds since) const {
  std::vector<std::string> names;
  const auto now = CallClock::Clock::now();
  for (const std::string& name : devices) {
    const auto open = devices_.find(name);
    if (open == devices_.end()) continue;
    const auto begin = open->second->calls().Oldest();
    if (begin && now - *begin >= since) names.push_back(name);
  }
  return names;
}

void DeviceSet::Leave(const std::vector<std::string>& devices, const std::vector<std::string>& hung,
                      std::weak_ptr<void> life) {
  std::erase_if(left_, [](const Left& left) { return left.life.expired(); });
  left_.push_back({hung, "", std::move(life)});
  for (const std::string& name : devices) Forget(name);
}

bool DeviceSet::HangsIn(const std::string& device) const {
  return std::any_of(left_.begin(), left_.end(), [&](const Left& left) {
    if (left.life.expired()) return false;
    const bool all = !left.plugin.empty() && left.plugin == PluginOf(device);
    return all || std::find(left.hung.begin(), left.hung.end(), device) != left.hung.end();
  });
}

bool DeviceSet::WaitForThoseLeft(std::chrono::milliseconds time) {
  if (left_.empty()) return true;
  if (faults_ != nullptr) faults_->Release();
  const auto gone = [](const Left& left) { return left.life.expired(); };
  const auto end = std::chrono::steady_clock::now() + time;
  while (!std::all_of(left_.begin(), left_.end(), gone)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void CloseDevices::operator()(DeviceSet* devices) const {
  constexpr std::chrono::milliseconds kWhile(2000);
  if (!devices->WaitForThoseLeft(kWhile)) {
    devices->host().Silence();
    return;
  }
  const std::shared_ptr<HostServices> host = devices->host_;
  const std::chrono::milliseconds limit = devices->closing_limit();
  Watched<absl::Status> work([owned = std::shared_ptr<DeviceSet>(devices)]() mutable {
    owned.reset();
    return absl::OkStatus();
  });
  if (!work.WaitFor(limit)) host->Silence();
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
