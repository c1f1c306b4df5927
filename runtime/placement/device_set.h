// Holds the devices that a model can be placed on. They were found before; each is opened when
// something is placed there. Owns the thread team that the devices use. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/devices/inventory.h"
#include "plugins/fault/fault_spec.h"
#include "plugins/fault/injector.h"
#include "plugins/handles.h"
#include "plugins/host_services.h"
#include "runtime/base/watched.h"
#include "runtime/model/split/tensor_places.h"

namespace trine {

class DeviceSet {
 public:
  // Lends the team to the devices. `faults` for absent devices are logged and have no effect.
  DeviceSet(Inventory inventory, std::shared_ptr<ThreadTeam> team, LogSink log,
            fault::FaultSpec faults = {});
  // Lends threads of Trine's own; 0: DefaultThreads.
  DeviceSet(const Inventory& inventory, uint32_t threads, const LogSink& log);
  ~DeviceSet();  // logs the faults that were asked for and never happened
  DeviceSet(const DeviceSet&) = delete;
  DeviceSet& operator=(const DeviceSet&) = delete;

  // Sets how long a device other than the CPU may take for a call before it is taken for hung.
  void set_limit(std::chrono::milliseconds limit) { limit_ = limit; }
  // Returns the longest time to wait until memory is freed and devices are closed.
  std::chrono::milliseconds closing_limit() const {
    return std::clamp<std::chrono::milliseconds>(limit_, std::chrono::seconds(1),
                                                 std::chrono::seconds(5));
  }
  // Opens a device by any name that FindDevice knows, or returns it if it is open. Returns
  // DEADLINE_EXCEEDED if opening takes longer than the limit or than `most`.
  absl::StatusOr<std::shared_ptr<Device>> Open(
      const std::string& name, std::chrono::milliseconds most = std::chrono::milliseconds::max());
  // Waits for work that calls into the devices, and returns its result. If a device has been in a
  // call for longer than the limit, abandons the work and returns DEADLINE_EXCEEDED, naming the
  // device. Calls `meanwhile` from time to time and when the work's bell rings. `meanwhile` returns
  // false if the work has been told to stop; if the work then does not end soon, it is abandoned
  // with CANCELLED.
  template <class Result>
  Result WaitFor(Watched<Result>* work, const std::vector<NamedDevice>& devices,
                 const std::function<bool()>& meanwhile = nullptr);
  // Returns whether calls of the device have to be watched. Calls of the CPU are watched only if
  // faults are injected, because it never hangs otherwise.
  bool IsWatched(const std::string& tier_name) const {
    return tier_name != "cpu" || faults_ != nullptr;
  }

  // Abandons work that uses `devices` and does not return. Devices in `hung` can't be used until
  // `life` has expired. The other devices are opened again when they are needed, because two users
  // must not share a device's handle.
  void Leave(const std::vector<std::string>& devices, const std::vector<std::string>& hung,
             std::weak_ptr<void> life);
  // Returns whether abandoned work still hangs in the device, or in its whole plugin.
  bool HangsIn(const std::string& device) const;
  // Returns the devices of `devices` that have been in a call for at least `since`.
  std::vector<std::string> InACall(const std::vector<std::string>& devices,
                                   std::chrono::milliseconds since) const;

  // Lets the next Open open the device again. Users of the old handle keep it.
  void Forget(const std::string& tier_name);
  // Forgets all devices but these.
  void ForgetUnused(const std::set<std::string>& used);
  // Returns the tier name for any of a device's names.
  absl::StatusOr<std::string> Resolve(const std::string& name) const;

  const Inventory& inventory() const { return inventory_; }
  const HostServices& host() const { return *host_; }
  HostServices& host() { return *host_; }
  std::vector<std::string> GpuNames() const;  // tier names, dgpu before igpu
  // Returns null if no faults are injected.
  fault::Injector* faults() const { return faults_.get(); }

 private:
  struct Opened {
    std::shared_ptr<Backend> backend;
    std::shared_ptr<Device> device;
  };
  // A plugin that has been opened, even if opening its device failed.
  struct OpenedBackend {
    std::mutex mutex;
    std::shared_ptr<Backend> backend;  // guarded by mutex
  };
  // Returns a function that opens the device and holds everything it needs.
  std::function<absl::StatusOr<Opened>()> Opener(const InventoryDevice& device,
                                                 std::shared_ptr<OpenedBackend> first) const;
  // Returns a device that has been in a call for longer than the limit; "": there is none.
  std::string Hung(const std::vector<NamedDevice>& devices) const;
  absl::Status TooLong(const std::string& device, const char* what,
                       std::chrono::milliseconds limit) const;
  const std::string& PluginOf(const std::string& tier_name) const;  // its plugin's path
  // Ends injected hangs and waits for abandoned work. Returns false if some work has not ended, and
  // so still uses this object.
  bool WaitForThoseLeft(std::chrono::milliseconds time);
  friend struct CloseDevices;
  std::vector<fault::DeviceNames> NamesOf(size_t plugin) const;  // by the plugin's device index
  BackendWrapper Wrapper(size_t plugin) const;

  Inventory inventory_;
  std::shared_ptr<HostServices> host_;                        // outlives the backends
  std::unique_ptr<fault::Injector> faults_;                   // outlives the backends
  std::vector<fault::DeviceNames> faulty_;                    // the devices that faults can name
  std::map<std::string, std::shared_ptr<Backend>> backends_;  // by plugin path
  std::map<std::string, std::shared_ptr<Device>> devices_;    // by tier name
  std::chrono::milliseconds limit_ = std::chrono::minutes(5);
  // Abandoned work.
  struct Left {
    std::vector<std::string> hung;  // the devices that it hangs in
    std::string plugin;             // the plugin that hangs, with all its devices; "": none
    std::weak_ptr<void> life;
  };
  std::vector<Left> left_;
};

// Closes the devices without waiting for ever. If abandoned work does not end, the devices, the
// thread team and the host's table are leaked, because the work still uses them; it can't log any
// more.
struct CloseDevices {
  void operator()(DeviceSet* devices) const;
};
using OwnedDevices = std::unique_ptr<DeviceSet, CloseDevices>;

template <class Result>
Result DeviceSet::WaitFor(Watched<Result>* work, const std::vector<NamedDevice>& devices,
                          const std::function<bool()>& meanwhile) {
  constexpr std::chrono::milliseconds kOften(20), kSoon(1000);
  std::vector<std::string> names;
  for (const NamedDevice& d : devices) names.push_back(d.name);
  auto last_moment = std::chrono::steady_clock::time_point::max();
  while (!work->Listen(kOften)) {
    const auto now = std::chrono::steady_clock::now();
    if (meanwhile && !meanwhile()) last_moment = std::min(last_moment, now + kSoon);
    const std::string hung = Hung(devices);
    if ((hung.empty() && now < last_moment) || !work->Leave()) continue;
    if (hung.empty()) {
      Leave(names, InACall(names, kSoon), work->life());
      return absl::CancelledError("it was cancelled");
    }
    Leave(names, {hung}, work->life());
    return TooLong(hung, "a call", limit_);
  }
  return work->Take();
}

}  // namespace trine
