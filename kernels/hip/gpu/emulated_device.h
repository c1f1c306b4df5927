// Internals of the emulated runtime: the state of its devices, the work that their streams hold,
// and the order in which work is done.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/hip/gpu/emulated_runtime.h"

namespace trine::hip::emulator {

inline constexpr uint32_t kMostDevices = 8;

struct DeviceState {
  std::map<Call, uint64_t> calls;
  uint64_t used = 0, peak = 0;
  gpuError failed = gpuSuccess;
};

struct Machine {
  std::mutex mutex;
  DeviceSettings settings;
  DeviceState devices[kMostDevices];
  struct Allocation {
    size_t bytes;
    int device;
  };
  std::map<const void*, Allocation> allocations;
  std::map<const void*, size_t> pinned;  // host memory that devices see
  std::string failure;
  bool tracing = false;
  std::vector<Done> trace;
};
Machine& TheMachine();

// The calling thread's device, as gpuSetDevice left it.
int CurrentDevice();
void SetCurrentDevice(int device);

// Counts a call, and checks that it may go on. Returns success, or the error with which it must
// fail.
gpuError Begin(Call call, int device);

gpuError CheckDevice(int device);
// Makes all later calls on the device fail. LastFailure then returns `why`.
gpuError Lose(int device, const std::string& why);
gpuError FailureOf(int device);

bool IsPinned(const void* p, size_t bytes);
void Trace(const Done& done);

// Counts how often an event was recorded, and how many of these records a stream has reached.
struct Passing {
  uint64_t recorded = 0, passed = 0;
  std::chrono::steady_clock::time_point time;
};

// A piece of work: a copy or a kernel, an event to record, or an event to wait for.
struct Work {
  std::function<gpuError()> run;      // null for events
  std::shared_ptr<Passing> recorded;  // passes when the stream reaches it
  std::shared_ptr<Passing> awaited;   // the stream waits until it has passed `target` times
  uint64_t target = 0;
};

struct Graph {
  std::vector<Work> works;
};

struct Stream {
  int device = 0;
  uint64_t number = 0;
  std::unique_ptr<Graph> capturing;
  std::deque<Work> pending;
};

struct Event {
  std::shared_ptr<Passing> passing = std::make_shared<Passing>();
};

void AddStream(gpuStream stream);
void RemoveStream(gpuStream stream);

// Does the work, keeps it for later or captures it, depending on the stream and the settings.
gpuError Submit(gpuStream stream, Work work);

// Do work until a stream (null: every stream), an event's last record, or everything is done.
void Finish(gpuStream stream);
void Finish(const Passing& event);
// Returns whether the streams have reached the event's last record.
bool HasPassed(const Passing& event);
void FinishAll();

}  // namespace trine::hip::emulator
