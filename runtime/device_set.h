// The devices a model can be placed on: found once, opened when something is placed there. Owns the
// thread team that is lent to them. Not thread-safe.
#ifndef TRINE_RUNTIME_DEVICE_SET_H_
#define TRINE_RUNTIME_DEVICE_SET_H_

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
#include "dispatch/inventory.h"
#include "plugins/fault/fault_spec.h"
#include "plugins/fault/injector.h"
#include "plugins/handles.h"
#include "plugins/host_services.h"
#include "runtime/model/tensor_places.h"
#include "runtime/watched.h"

namespace trine {

// Threads for the team where the user names no number: one per core this process may use.
uint32_t DefaultThreads(const detect::CpuInfo& cpu);

class DeviceSet {
 public:
  // `threads` 0: DefaultThreads. `faults` for devices that are not there are logged, and harmless.
  DeviceSet(Inventory inventory, uint32_t threads, LogSink log, fault::FaultSpec faults = {});
  DeviceSet(const DeviceSet&) = delete;
  DeviceSet& operator=(const DeviceSet&) = delete;

  // How long a device may take for a call, other than the CPU: then it counts as hung.
  void set_limit(std::chrono::milliseconds limit) { limit_ = limit; }
  // What giving back memory and closing devices may take. There is nothing to be won by more than
  // this.
  std::chrono::milliseconds closing_limit() const {
    return std::clamp<std::chrono::milliseconds>(limit_, std::chrono::seconds(1),
                                                 std::chrono::seconds(5));
  }
  // By any name that FindDevice knows. DEADLINE_EXCEEDED where it does not come back within the
  // limit, or `most`.
  absl::StatusOr<std::shared_ptr<Device>> Open(
      const std::string& name, std::chrono::milliseconds most = std::chrono::milliseconds::max());
  // Waits for work that calls into the devices, and leaves it behind when one of them has been in a
  // call for too long: DEADLINE_EXCEEDED of that one. `meanwhile` is called now and then, and
  // when the work's bell rings; false: the work is being stopped. If it does not come back from
  // that soon it is left behind, too: CANCELLED.
  template <class Result>
  Result WaitFor(Watched<Result>* work, const std::vector<NamedDevice>& devices,
                 const std::function<bool()>& meanwhile = nullptr);
  // Whether what is done with the device has to be watched: not the CPU's, which hangs on purpose
  // only.
  bool IsWatched(const std::string& tier_name) const {
    return tier_name != "cpu" || faults_ != nullptr;
  }

  // Something that uses these devices and does not come back: it is left behind. Those that it
  // hangs in are not used until it has; the others are opened anew, as one handle of a device is
  // not for two at once.
  void Leave(const std::vector<std::string>& devices, const std::vector<std::string>& hung,
             std::weak_ptr<void> life);
  bool HangsIn(const std::string& device) const;
  // Of devices, those that have been in a call for so long.
  std::vector<std::string> InACall(const std::vector<std::string>& devices,
                                   std::chrono::milliseconds since) const;

  // Opens it anew the next time. Whoever uses it keeps it until then.
  void Forget(const std::string& tier_name);
  // All but these.
  void ForgetUnused(const std::set<std::string>& used);
  // The tier name behind any of a device's names.
  absl::StatusOr<std::string> Resolve(const std::string& name) const;

  const Inventory& inventory() const { return inventory_; }
  const HostServices& host() const { return *host_; }
  HostServices& host() { return *host_; }
  std::vector<std::string> GpuNames() const;  // tier names, dgpu before igpu
  // Null where no faults were asked for.
  fault::Injector* faults() const { return faults_.get(); }

 private:
  struct Opened {
    std::shared_ptr<Backend> backend;
    std::shared_ptr<Device> device;
  };
  // A plugin that has been opened, whatever becomes of its devices.
  struct OpenedBackend {
    std::mutex mutex;
    std::shared_ptr<Backend> backend;  // guarded by mutex
  };
  // What opens it, with all that this needs.
  std::function<absl::StatusOr<Opened>()> Opener(const InventoryDevice& device,
                                                 std::shared_ptr<OpenedBackend> first) const;
  // Of devices, the one that has been in a call for longer than the limit; "": none has.
  std::string Hung(const std::vector<NamedDevice>& devices) const;
  absl::Status TooLong(const std::string& device, const char* what,
                       std::chrono::milliseconds limit) const;
  const std::string& PluginOf(const std::string& tier_name) const;  // its path
  // Lets go of those that hang on purpose. False: some are there still, and use what is here.
  bool WaitForThoseLeft(std::chrono::milliseconds time);
  friend struct CloseDevices;
  std::vector<fault::DeviceNames> NamesOf(size_t plugin) const;  // by the plugin's own numbers
  BackendWrapper Wrapper(size_t plugin) const;

  Inventory inventory_;
  std::shared_ptr<HostServices> host_;                        // outlives the backends
  std::unique_ptr<fault::Injector> faults_;                   // likewise
  std::map<std::string, std::shared_ptr<Backend>> backends_;  // by plugin path
  std::map<std::string, std::shared_ptr<Device>> devices_;    // by tier name
  std::chrono::milliseconds limit_ = std::chrono::minutes(5);
  struct Left {
    std::vector<std::string> hung;  // devices
    std::string plugin;             // it hangs in, with all its devices; "": in none
    std::weak_ptr<void> life;
  };
  std::vector<Left> left_;
};

// Closes the devices, which may not come back from that. What was left behind in them keeps them,
// the team and the host's table if it does not come back: there is nothing else to be done. But
// nobody is told anything any more.
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

#endif  // TRINE_RUNTIME_DEVICE_SET_H_
