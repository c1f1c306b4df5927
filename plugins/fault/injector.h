// Stands between the host and a backend and injects the faults of a FaultSpec. Passes every other
// call to the plugin unchanged. Keeps the ABI's promises on both sides: awaits the work of a device
// that it declared lost before it frees the device's memory.
//
// Must outlive the backends it wraps. Handles of devices that the host has given up may still be
// open then: the destructor gives them back to the plugin. No call may use them after that.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plugins/fault/device_faults.h"
#include "plugins/fault/fault_spec.h"
#include "plugins/handles.h"
#include "trine/backend.h"

namespace trine::fault {

// Blocks calls that are to hang, until all are released. Thread-safe.
class HungCalls {
 public:
  // Blocks until Release, or for at most `limit` if there is one. Returns whether Release was
  // called.
  bool Hang(std::optional<std::chrono::milliseconds> limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    ++inside_;
    if (limit) {
      changed_.wait_for(lock, *limit, [&] { return released_; });
    } else {
      changed_.wait(lock, [&] { return released_; });
    }
    --inside_;
    changed_.notify_all();
    return released_;
  }

  // Makes all calls of Hang return, and all later ones at once. Returns when those in flight have.
  void Release() {
    std::unique_lock<std::mutex> lock(mutex_);
    released_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return inside_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool released_ = false;
};

struct FaultyBackend;
struct FaultyDevice;

// Injects the faults. Thread-safe.
class Injector {
 public:
  explicit Injector(FaultSpec spec);
  ~Injector();
  Injector(const Injector&) = delete;
  Injector& operator=(const Injector&) = delete;

  // Returns whether any fault names the device.
  bool Concerns(const DeviceNames& names) const;
  // Returns the faults, as written, that name none of these devices.
  std::vector<std::string> Unmatched(const std::vector<DeviceNames>& all) const;

  // Returns a sentence for each fault that has not happened so far, on any device of `all` that it
  // names. Leaves out faults that Unmatched returns.
  std::vector<std::string> NeverHappened(const std::vector<DeviceNames>& all);

  // Wraps `backend`, which was opened with `host`, and takes it over: it must be closed through the
  // result. `devices` has the names of the backend's devices, by index.
  OpenedBackend Wrap(const trine_plugin& table, const trine_host* host, trine_backend* backend,
                     const std::vector<DeviceNames>& devices);

  // Releases every call that hangs and fails the timelines of hung devices. Nothing hangs
  // afterwards. Returns when the calls have left the wrapper. The destructor calls it too.
  void Release();

  // The methods below are for the wrapper's table.
  HungCalls& hung_calls() { return hung_calls_; }
  void Close(FaultyBackend* backend);
  void AddDevice(FaultyBackend* backend, std::unique_ptr<FaultyDevice> device);
  std::unique_ptr<FaultyDevice> TakeDevice(FaultyDevice* device);
  // Declares this context and all others of the same device lost.
  void Lose(FaultyDevice* device, const Fault& fault);
  // Declares the context lost after `time`, unless it has been closed by then.
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

  std::mutex mutex_;  // guards the members below; taken before a device's mutex
  std::condition_variable alarms_changed_;
  std::map<std::string, std::unique_ptr<DeviceFaults>> faults_;  // by tier name
  std::vector<std::unique_ptr<FaultyBackend>> backends_;
  std::vector<Alarm> alarms_;
  bool stop_ = false;
  std::thread alarm_thread_;  // started by the first alarm
};

}  // namespace trine::fault
