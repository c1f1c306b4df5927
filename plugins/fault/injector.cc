#include "plugins/fault/injector.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugins/fault/faulty_handles.h"

namespace trine::fault {

Injector::Injector(FaultSpec spec) : spec_(std::move(spec)) {}

Injector::~Injector() {
  Release();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  alarms_changed_.notify_all();
  if (alarm_thread_.joinable()) alarm_thread_.join();
  for (const auto& backend : backends_) {
    for (const auto& device : backend->devices) device->Reclaim();
    backend->real.close(backend->handle);
  }
}

bool Injector::Concerns(const DeviceNames& names) const {
  return std::any_of(spec_.faults.begin(), spec_.faults.end(),
                     [&](const Fault& f) { return fault::Concerns(f, names); });
}

std::vector<std::string> Injector::Unmatched(const std::vector<DeviceNames>& all) const {
  std::vector<std::string> texts;
  for (const Fault& f : spec_.faults) {
    const bool matched = std::any_of(all.begin(), all.end(), [&](const DeviceNames& names) {
      return fault::Concerns(f, names);
    });
    if (!matched) texts.push_back(f.text);
  }
  return texts;
}

std::vector<std::string> Injector::NeverHappened(const std::vector<DeviceNames>& all) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> sentences;
  for (const Fault& f : spec_.faults) {
    std::vector<std::string> devices;
    bool has_struck = false;
    for (const DeviceNames& names : all) {
      if (!fault::Concerns(f, names)) continue;
      uint64_t calls = 0;
      if (const auto found = faults_.find(names.tier_name); found != faults_.end()) {
        for (const DeviceFaults::Tally& tally : found->second->Tallies()) {
          if (tally.fault->text != f.text) continue;
          has_struck = has_struck || tally.has_struck;
          calls = tally.calls;
        }
      }
      devices.push_back(absl::StrCat(names.tier_name, " made ", calls));
    }
    if (has_struck || devices.empty()) continue;
    sentences.push_back(absl::StrCat("fault '", f.text,
                                     "' never happened: of the calls it waits for, ",
                                     absl::StrJoin(devices, ", ")));
  }
  return sentences;
}

DeviceFaults* Injector::FaultsOf(const DeviceNames& names) {
  std::unique_ptr<DeviceFaults>& faults = faults_[names.tier_name];
  if (faults == nullptr) faults = std::make_unique<DeviceFaults>(names, spec_.faults);
  return faults.get();
}

OpenedBackend Injector::Wrap(const trine_plugin& table, const trine_host* host,
                             trine_backend* backend, const std::vector<DeviceNames>& devices) {
  auto wrapped = std::make_unique<FaultyBackend>();
  wrapped->injector = this;
  wrapped->real = table;
  wrapped->table = WrapTable(table);
  wrapped->host = host;
  wrapped->handle = backend;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const DeviceNames& names : devices) wrapped->faults.push_back(FaultsOf(names));
  const OpenedBackend result{&wrapped->table, reinterpret_cast<trine_backend*>(wrapped.get())};
  backends_.push_back(std::move(wrapped));
  return result;
}

void Injector::Close(FaultyBackend* backend) {
  std::unique_ptr<FaultyBackend> taken;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = std::find_if(backends_.begin(), backends_.end(),
                                 [&](const auto& b) { return b.get() == backend; });
    taken = std::move(*at);
    backends_.erase(at);
  }
  taken->real.close(taken->handle);
}

void Injector::AddDevice(FaultyBackend* backend, std::unique_ptr<FaultyDevice> device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  backend->devices.push_back(std::move(device));
}

std::unique_ptr<FaultyDevice> Injector::TakeDevice(FaultyDevice* device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(alarms_, [&](const Alarm& alarm) { return alarm.device == device; });
  auto& devices = device->backend->devices;
  const auto at = std::find_if(devices.begin(), devices.end(),
                               [&](const auto& d) { return d.get() == device; });
  std::unique_ptr<FaultyDevice> taken = std::move(*at);
  devices.erase(at);
  return taken;
}

void Injector::Lose(FaultyDevice* lost, const Fault& fault) {
  lost->faults->SetGone(fault);
  const std::string why = absl::StrCat("injected fault '", fault.text, "': the device is lost");
  lost->Fail(why);  // `backends_` does not hold a device that is being opened
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& backend : backends_) {
    for (const auto& device : backend->devices) {
      if (device->faults == lost->faults) device->Fail(why);
    }
  }
}

void Injector::LoseAfter(FaultyDevice* device, std::chrono::milliseconds time) {
  const std::lock_guard<std::mutex> lock(mutex_);
  alarms_.push_back({std::chrono::steady_clock::now() + time, device});
  if (!alarm_thread_.joinable()) alarm_thread_ = std::thread([this] { RunAlarms(); });
  alarms_changed_.notify_all();
}

void Injector::RunAlarms() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    const auto next = std::min_element(alarms_.begin(), alarms_.end(),
                                       [](const Alarm& a, const Alarm& b) { return a.at < b.at; });
    if (next == alarms_.end()) {
      alarms_changed_.wait(lock);
    } else if (std::chrono::steady_clock::now() < next->at) {
      const auto at = next->at;  // copied, because the alarms may change while this waits
      alarms_changed_.wait_until(lock, at);
    } else {
      next->device->Fail("injected timeout: the device is lost");
      alarms_.erase(next);
    }
  }
}

void Injector::Release() {
  hung_calls_.Release();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& backend : backends_) {
    for (const auto& device : backend->devices) {
      if (device->hung.load()) device->Fail("injected hang: let go");
    }
  }
}

}  // namespace trine::fault
