// What the wrapper's handles are: each holds the plugin's own, and the device that decides what
// becomes of calls on it.
#ifndef TRINE_PLUGINS_FAULT_FAULTY_HANDLES_H_
#define TRINE_PLUGINS_FAULT_FAULTY_HANDLES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "plugins/fault/device_faults.h"
#include "plugins/fault/injector.h"
#include "plugins/fault/outputs.h"
#include "trine/backend.h"

namespace trine::fault {

struct FaultyDevice;

struct FaultyBackend {
  Injector* injector = nullptr;
  trine_plugin real{};   // the plugin's functions
  trine_plugin table{};  // the wrapper's, with those missing that the plugin lacks
  const trine_host* host = nullptr;
  trine_backend* handle = nullptr;
  std::vector<DeviceFaults*> faults;                   // by index of device
  std::vector<std::unique_ptr<FaultyDevice>> devices;  // guarded by the injector
};

struct FaultyBuffer {
  FaultyDevice* device;
  trine_buffer* handle;
};

struct FaultyTimeline {
  FaultyDevice* device;
  trine_timeline* handle;
};

struct FaultyPlan {
  FaultyDevice* device;
  trine_plan* handle;
  uint32_t tokens_param = TRINE_NONE;  // indices of the graph's parameters
  uint32_t sequences_param = TRINE_NONE;
  PlanOutputs outputs;  // empty where no fault spoils any
};

// One opened context.
struct FaultyDevice {
  FaultyBackend* backend = nullptr;
  trine_device* handle = nullptr;
  DeviceFaults* faults = nullptr;
  bool async = false;
  std::atomic<bool> lost{false};
  std::atomic<bool> hung{false};  // what is submitted never ends
  std::atomic<int> waiters{0};    // inside timeline_wait

  std::mutex mutex;  // guards all below
  std::string why;   // it is lost; fixed from then on
  std::set<FaultyBuffer*> buffers;
  std::set<FaultyPlan*> plans;
  std::set<FaultyTimeline*> timelines;

  // A timeline of the wrapper's own, which a submission signals beside what it was asked to: the
  // host's are failed when the device is said to be lost, and then tell nothing of the work.
  struct Fence {
    trine_timeline* timeline;
    uint64_t value;  // signalled when the submission is done
  };
  std::vector<Fence> fences;

  const trine_plugin& real() const { return backend->real; }
  Injector& injector() const { return *backend->injector; }

  // The context is lost: points that are not reached fail.
  void Fail(const std::string& message);
  // A fence for one more submission, and its return when nothing was submitted.
  trine_status NextFence(trine_point* out, trine_error* err);
  void DropFence(const trine_point& fence);
  // Before anything of a lost or hung context goes back: its work is awaited.
  void Drain();
  bool Idle();       // all that reached the plugin is done
  void AwaitWork();  // and the fences go back
  // Everything goes back to the plugin, the device last.
  void Reclaim();
};

inline FaultyBackend* Of(trine_backend* h) { return reinterpret_cast<FaultyBackend*>(h); }
inline FaultyDevice* Of(trine_device* h) { return reinterpret_cast<FaultyDevice*>(h); }
inline FaultyBuffer* Of(trine_buffer* h) { return reinterpret_cast<FaultyBuffer*>(h); }
inline FaultyPlan* Of(trine_plan* h) { return reinterpret_cast<FaultyPlan*>(h); }
inline FaultyTimeline* Of(trine_timeline* h) { return reinterpret_cast<FaultyTimeline*>(h); }

}  // namespace trine::fault

#endif  // TRINE_PLUGINS_FAULT_FAULTY_HANDLES_H_
