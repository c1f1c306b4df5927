// The devices a model can be placed on: found once, opened when something is placed there. Owns the
// thread team that is lent to them. Not thread-safe.
#ifndef TRINE_RUNTIME_DEVICE_SET_H_
#define TRINE_RUNTIME_DEVICE_SET_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/inventory.h"
#include "plugins/fault/fault_spec.h"
#include "plugins/fault/injector.h"
#include "plugins/handles.h"
#include "plugins/host_services.h"

namespace trine {

// Threads for the team where the user names no number: one per core this process may use.
uint32_t DefaultThreads(const detect::CpuInfo& cpu);

class DeviceSet {
 public:
  // `threads` 0: DefaultThreads. `faults` for devices that are not there are logged, and harmless.
  DeviceSet(Inventory inventory, uint32_t threads, LogSink log, fault::FaultSpec faults = {});
  DeviceSet(const DeviceSet&) = delete;
  DeviceSet& operator=(const DeviceSet&) = delete;

  // By any name that FindDevice knows.
  absl::StatusOr<std::shared_ptr<Device>> Open(const std::string& name);
  // Opens it anew the next time. Whoever uses it keeps it until then.
  void Forget(const std::string& tier_name) { devices_.erase(tier_name); }
  // All but these.
  void ForgetUnused(const std::set<std::string>& used) {
    std::erase_if(devices_, [&](const auto& entry) { return used.count(entry.first) == 0; });
  }
  // The tier name behind any of a device's names.
  absl::StatusOr<std::string> Resolve(const std::string& name) const;

  const Inventory& inventory() const { return inventory_; }
  const HostServices& host() const { return *host_; }
  HostServices& host() { return *host_; }
  std::vector<std::string> GpuNames() const;  // tier names, dgpu before igpu
  // Null where no faults were asked for.
  fault::Injector* faults() const { return faults_.get(); }

 private:
  absl::StatusOr<std::shared_ptr<Backend>> OpenBackend(size_t plugin);
  std::vector<fault::DeviceNames> NamesOf(size_t plugin) const;  // by the plugin's own numbers
  BackendWrapper Wrapper(size_t plugin) const;

  Inventory inventory_;
  std::unique_ptr<HostServices> host_;                        // outlives the backends
  std::unique_ptr<fault::Injector> faults_;                   // likewise
  std::map<std::string, std::shared_ptr<Backend>> backends_;  // by plugin path
  std::map<std::string, std::shared_ptr<Device>> devices_;    // by tier name
};

}  // namespace trine

#endif  // TRINE_RUNTIME_DEVICE_SET_H_
