// The parts of the wrapper between host and plugin. Each of its handles holds the plugin's own
// handle and its device, which decides what happens to calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "plugins/fault/device_faults.h"
#include "plugins/fault/fault_spec.h"
#include "plugins/fault/injector.h"
#include "trine/backend.h"
#include "trine/sdk/graph.h"

namespace trine::fault {

// The tensors of IO slots that a plan's ops write, and the buffers they are in.
class PlanOutputs {
 public:
  // Returns the outputs of a plan that the plugin has accepted. `desc` has the plugin's buffers.
  static PlanOutputs Of(const trine_plan_desc& desc);

  // Overwrites the outputs of a run with these arguments. `seed` is for Junk::kBits.
  trine_status Spoil(const trine_plugin& table, const trine_run_args& args, Junk junk,
                     uint64_t seed, trine_error* err) const;

 private:
  sdk::Graph graph_;
  std::vector<uint32_t> tensors_;
  std::vector<trine_binding> bindings_;  // the bindings of IO slots
};

struct FaultyDevice;

struct FaultyBackend {
  Injector* injector = nullptr;
  trine_plugin real{};   // the plugin's functions
  trine_plugin table{};  // the wrapper's functions; null where the plugin's are
  const trine_host* host = nullptr;
  trine_backend* handle = nullptr;
  std::vector<DeviceFaults*> faults;                   // by device index; owned by the injector
  std::vector<std::unique_ptr<FaultyDevice>> devices;  // guarded by the injector's mutex
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
  // Indices of the graph's parameters of these kinds; TRINE_NONE: the graph has no such parameter.
  uint32_t tokens_param = TRINE_NONE;
  uint32_t sequences_param = TRINE_NONE;
  PlanOutputs outputs;  // empty when no fault spoils outputs
};

// A context: one opening of a device. A device may have several contexts.
struct FaultyDevice {
  FaultyBackend* backend = nullptr;
  trine_device* handle = nullptr;
  DeviceFaults* faults = nullptr;
  bool async = false;
  std::atomic<bool> lost{false};
  std::atomic<bool> hung{false};  // submissions never end
  std::atomic<int> waiters{0};    // threads inside timeline_wait

  std::mutex mutex;  // guards the members below
  std::string why;   // why it is lost; fixed once `lost` is true
  std::set<FaultyBuffer*> buffers;
  std::set<FaultyPlan*> plans;
  std::set<FaultyTimeline*> timelines;

  // A timeline of the wrapper's own, which each submission signals in addition to the host's
  // timelines. It tells when the work is done; the host's timelines can't, because they are failed
  // when the device is declared lost.
  struct Fence {
    trine_timeline* timeline;
    uint64_t value;  // signalled when the last submission is done
  };
  std::vector<Fence> fences;

  const trine_plugin& real() const { return backend->real; }
  Injector& injector() const { return *backend->injector; }

  // Declares the context lost. Points of its timelines that are not reached fail with `message`.
  void Fail(const std::string& message);
  // Returns a fence for one submission. Call DropFence with it if nothing was submitted.
  trine_status NextFence(trine_point* out, trine_error* err);
  void DropFence(const trine_point& fence);
  // Waits for the work of a lost or hung context. Called before the plugin gets a handle back.
  void Drain();
  bool Idle();       // returns whether all work that reached the plugin is done
  void AwaitWork();  // waits until it is done, and destroys the fences
  // Gives all handles back to the plugin, the device last.
  void Reclaim();
};

// Convert the ABI's handles to the wrapper's objects.
inline FaultyBackend* Of(trine_backend* h) { return reinterpret_cast<FaultyBackend*>(h); }
inline FaultyDevice* Of(trine_device* h) { return reinterpret_cast<FaultyDevice*>(h); }
inline FaultyBuffer* Of(trine_buffer* h) { return reinterpret_cast<FaultyBuffer*>(h); }
inline FaultyPlan* Of(trine_plan* h) { return reinterpret_cast<FaultyPlan*>(h); }
inline FaultyTimeline* Of(trine_timeline* h) { return reinterpret_cast<FaultyTimeline*>(h); }

// Returns the plugin's handle; null for null.
template <class Handle>
Handle* RealOf(Handle* wrapped) {
  return wrapped == nullptr ? nullptr : Of(wrapped)->handle;
}

// Copies an array of the ABI and replaces the wrapper's handles by the plugin's. Elements keep
// their stride and the bytes that this host does not know.
template <class T>
class Translated {
 public:
  // `patch(T*)` replaces the handles of one element. An array that is null, or whose elements are
  // shorter than those of ABI 1.0, is passed on unchanged, for the plugin to refuse.
  template <class Patch>
  Translated(const T* array, uint32_t count, uint32_t stride, Patch patch) : array_(array) {
    if (array == nullptr || count == 0 || stride < sizeof(T)) return;
    bytes_.resize(size_t{count} * stride);
    std::memcpy(bytes_.data(), array, bytes_.size());
    for (uint32_t i = 0; i < count; ++i) {
      std::byte* at = bytes_.data() + size_t{i} * stride;
      T element;
      std::memcpy(&element, at, sizeof(T));
      patch(&element);
      std::memcpy(at, &element, sizeof(T));
    }
  }

  const T* get() const {
    return bytes_.empty() ? array_ : reinterpret_cast<const T*>(bytes_.data());
  }
  // Appends an element of the same stride.
  void Append(const T& element, uint32_t stride) {
    bytes_.resize(bytes_.size() + stride);
    std::memcpy(bytes_.data() + bytes_.size() - stride, &element, sizeof(T));
  }

 private:
  const T* array_;
  std::vector<std::byte> bytes_;
};

// A number that is no status of the ABI.
constexpr trine_status kNonsenseStatus = 1234;

// Returns UNAVAILABLE, with the reason in `err`, when the context is lost; otherwise OK.
trine_status CheckLost(FaultyDevice& device, trine_error* err);

// Writes the fault to the host's log.
void Announce(FaultyDevice& device, const Strike& strike);

// Blocks as the fault says, then declares the context lost. `team` is true if the call may use the
// host's team.
void HangHere(FaultyDevice& device, const Strike& strike, bool team);

// Counts a call that is not a submission and carries out the fault that is due. Returns OK if the
// call is to be passed on to the plugin. Sets *strike; the caller carries out garbage other than a
// wrong status.
trine_status Meet(FaultyDevice& device, Moment moment, trine_error* err, Strike* strike = nullptr);

// The two functions of the table that submit work.
trine_status PlanRun(trine_plan* plan, const trine_run_args* args, trine_error* err);
trine_status CopyRun(trine_device* device, const trine_copy_args* args, trine_error* err);

// Returns the wrapper's table for a plugin. Its identity and its set of optional functions are
// those of `real`. Its `open` fails, because a backend is opened before it is wrapped.
trine_plugin WrapTable(const trine_plugin& real);

}  // namespace trine::fault
