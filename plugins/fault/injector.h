// Stands between the host and a backend and makes what FaultSpec says go wrong. What is not struck
// reaches the plugin as it was called, and the ABI's promises hold on both sides: a device that is
// only said to be lost has its work awaited before its memory goes back.
//
// Outlives the backends it wraps. Handles that are still open when it goes, those of devices the
// host has given up, go back to the plugin then; no call on them may follow.
#ifndef TRINE_PLUGINS_FAULT_INJECTOR_H_
#define TRINE_PLUGINS_FAULT_INJECTOR_H_

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugins/fault/device_faults.h"
#include "plugins/fault/fault_spec.h"
#include "plugins/fault/hung_calls.h"
#include "plugins/handles.h"
#include "trine/backend.h"

namespace trine::fault {

struct FaultyBackend;
struct FaultyDevice;

// Thread-safe.
class Injector {
 public:
  explicit Injector(FaultSpec spec);
  ~Injector();
  Injector(const Injector&) = delete;
  Injector& operator=(const Injector&) = delete;

  // Some fault is one of this device's.
  bool Concerns(const DeviceNames& names) const;
  // What faults are written for devices that are none of these, as written.
  std::vector<std::string> Unmatched(const std::vector<DeviceNames>& all) const;

  // `devices`: what the backend's devices are called, by index. `host` and `backend` are what the
  // backend was opened with and what that gave; from here on it is closed through the wrapper.
  OpenedBackend Wrap(const trine_plugin& table, const trine_host* host, trine_backend* backend,
                     const std::vector<DeviceNames>& devices);

  // Lets go of every call that hangs, and fails what was waited for; from now on nothing hangs.
  // Returns when the calls have left the wrapper. Also done by the destructor.
  void Release();

  // For the table's functions.
  HungCalls& hung_calls() { return hung_calls_; }
  void Close(FaultyBackend* backend);
  void AddDevice(FaultyBackend* backend, std::unique_ptr<FaultyDevice> device);
  std::unique_ptr<FaultyDevice> TakeDevice(FaultyDevice* device);
  // The context is lost, and with it all others of the same device.
  void Lose(FaultyDevice* device, const Fault& fault);
  // The context, if it is still open, is lost after so long.
  void LoseAfter(FaultyDevice* device, std::chrono::milliseconds time);

 private:
  struct Alarm {
    std::chrono::steady_clock::time_point at;
    FaultyDevice* device;
  };
  DeviceFaults* FaultsOf(const DeviceNames& names);
  void RunAlarms();

  const FaultSpec spec_;
  HungCalls hung_calls_;

  std::mutex mutex_;  // guards all below; taken before a device's own
  std::condition_variable alarms_changed_;
  std::map<std::string, std::unique_ptr<DeviceFaults>> faults_;  // by tier name
  std::vector<std::unique_ptr<FaultyBackend>> backends_;
  std::vector<Alarm> alarms_;
  bool stop_ = false;
  std::thread alarm_thread_;  // started by the first alarm
};

}  // namespace trine::fault

#endif  // TRINE_PLUGINS_FAULT_INJECTOR_H_
