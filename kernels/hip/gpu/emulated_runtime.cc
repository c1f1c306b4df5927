#include "kernels/hip/gpu/emulated_runtime.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "kernels/hip/gpu/emulator.h"

namespace trine::hip::emulator {

using Work = std::function<gpuError()>;

struct Graph {
  std::vector<Work> works;
};
struct Stream {
  std::unique_ptr<Graph> capturing;
};
struct Event {
  std::chrono::steady_clock::time_point time;
};

namespace {

// Reading uninitialised memory must not pass unseen; of large allocations the beginning shows it.
constexpr size_t kPoisoned = 1 << 20;

struct Device {
  std::mutex mutex;
  DeviceSettings settings;
  std::map<Call, uint64_t> calls;
  std::map<void*, size_t> allocations;
  uint64_t used = 0;
  gpuError failed = gpuSuccess;
  std::string failure;
};

Device& TheDevice() {
  static Device device;
  return device;
}

// Success, or why a call fails before it does anything.
gpuError Begin(Call call) {
  Device& d = TheDevice();
  const std::lock_guard<std::mutex> lock(d.mutex);
  if (d.failed != gpuSuccess) return d.failed;
  const uint64_t count = ++d.calls[call];
  if (call == Call::kNone || call != d.settings.failing || count < d.settings.failing_from) {
    return gpuSuccess;
  }
  if (call == Call::kMalloc || call == Call::kHostMalloc) return gpuErrorMemoryAllocation;
  d.failure = "a fault that was asked for";
  return d.failed = gpuErrorLaunchFailure;
}

gpuError Submit(gpuStream stream, Work work) {
  if (stream != nullptr && stream->capturing != nullptr) {
    stream->capturing->works.push_back(std::move(work));
    return gpuSuccess;
  }
  return work();
}

gpuError RunNow(const Launch& launch) {
  std::string wrong = Run(launch);
  if (wrong.empty()) return gpuSuccess;
  Device& d = TheDevice();
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.failure = std::string(launch.label != nullptr ? launch.label : "a kernel") + ": " + wrong;
  return d.failed = gpuErrorLaunchFailure;
}

gpuError CheckDevice(int device) {
  const std::lock_guard<std::mutex> lock(TheDevice().mutex);
  const auto devices = static_cast<int>(TheDevice().settings.devices);
  return device >= 0 && device < devices ? gpuSuccess : gpuErrorInvalidValue;
}

gpuError Write(char* to, int bytes, const std::string& text) {
  if (bytes < 1) return gpuErrorInvalidValue;
  std::snprintf(to, static_cast<size_t>(bytes), "%s", text.c_str());
  return gpuSuccess;
}

}  // namespace

void Reset(const DeviceSettings& settings) {
  Device& d = TheDevice();
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.settings = settings;
  d.calls.clear();
  d.failed = gpuSuccess;
  d.failure.clear();
}

std::string LastFailure() {
  const std::lock_guard<std::mutex> lock(TheDevice().mutex);
  return TheDevice().failure;
}

}  // namespace trine::hip::emulator

namespace emulator = trine::hip::emulator;
using emulator::Begin;
using emulator::Call;
using emulator::CheckDevice;
using emulator::Submit;
using emulator::TheDevice;

gpuError gpuGetDeviceCount(int* count) {
  const std::lock_guard<std::mutex> lock(TheDevice().mutex);
  *count = static_cast<int>(TheDevice().settings.devices);
  return *count > 0 ? gpuSuccess : gpuErrorNoDevice;
}

gpuError gpuSetDevice(int device) { return CheckDevice(device); }

const char* gpuGetErrorName(gpuError error) {
  switch (error) {
    case gpuSuccess:
      return "gpuSuccess";
    case gpuErrorInvalidValue:
      return "gpuErrorInvalidValue";
    case gpuErrorMemoryAllocation:
      return "gpuErrorMemoryAllocation";
    case gpuErrorNoDevice:
      return "gpuErrorNoDevice";
    case gpuErrorNotReady:
      return "gpuErrorNotReady";
    case gpuErrorLaunchFailure:
      return "gpuErrorLaunchFailure";
  }
  return "unknown";
}

const char* gpuGetErrorString(gpuError error) {
  switch (error) {
    case gpuSuccess:
      return "no error";
    case gpuErrorInvalidValue:
      return "an argument is wrong";
    case gpuErrorMemoryAllocation:
      return "out of memory";
    case gpuErrorNoDevice:
      return "no device";
    case gpuErrorNotReady:
      return "not ready";
    case gpuErrorLaunchFailure:
      return "a kernel failed";
  }
  return "unknown";
}

gpuError gpuGetLastError() { return gpuSuccess; }

gpuError gpuGetName(char* name, int bytes, int device) {
  const gpuError error = CheckDevice(device);
  if (error != gpuSuccess) return error;
  const auto wave = emulator::CurrentSettings().wave;
  return emulator::Write(name, bytes, "emulator, waves of " + std::to_string(wave));
}

gpuError gpuGetAttribute(int* value, gpuAttribute attribute, int device) {
  const gpuError error = CheckDevice(device);
  if (error != gpuSuccess) return error;
  switch (attribute) {
    case gpuAttribute::kWarpSize:
      *value = static_cast<int>(emulator::CurrentSettings().wave);
      break;
    case gpuAttribute::kMultiprocessors:
      *value = 2;  // kernels are made for few blocks: each costs the emulator
      break;
    case gpuAttribute::kL2Bytes:
      *value = 1 << 20;
      break;
    case gpuAttribute::kIntegrated: {
      const std::lock_guard<std::mutex> lock(TheDevice().mutex);
      *value = TheDevice().settings.integrated ? 1 : 0;
      break;
    }
    case gpuAttribute::kSharedBytes:
      *value = 48 << 10;
      break;
    case gpuAttribute::kSharedBytesOptIn:
      *value = 64 << 10;
      break;
    case gpuAttribute::kMajor:
    case gpuAttribute::kMinor:
      *value = 0;
      break;
  }
  return gpuSuccess;
}

gpuError gpuDeviceGetPciBusId(char* id, int bytes, int) { return emulator::Write(id, bytes, ""); }

gpuError gpuRuntimeGetVersion(int* version) {
  *version = 1;
  return gpuSuccess;
}
gpuError gpuDriverGetVersion(int* version) { return gpuRuntimeGetVersion(version); }

gpuError gpuMemGetInfo(size_t* available, size_t* total) {
  const gpuError error = Begin(Call::kNone);
  if (error != gpuSuccess) return error;
  const std::lock_guard<std::mutex> lock(TheDevice().mutex);
  *total = TheDevice().settings.memory_bytes;
  *available = *total - std::min<size_t>(*total, TheDevice().used);
  return gpuSuccess;
}

gpuError gpuMalloc(void** p, size_t bytes) {
  const gpuError error = Begin(Call::kMalloc);
  if (error != gpuSuccess) return error;
  emulator::Device& d = TheDevice();
  const std::lock_guard<std::mutex> lock(d.mutex);
  if (bytes > d.settings.memory_bytes || d.used > d.settings.memory_bytes - bytes) {
    return gpuErrorMemoryAllocation;
  }
  // Exactly as many as were asked for, for a sanitizer to see what is beyond.
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes) != 0) return gpuErrorMemoryAllocation;
  std::memset(memory, 0xa5, std::min(bytes, emulator::kPoisoned));
  d.allocations[memory] = bytes;
  d.used += bytes;
  *p = memory;
  return gpuSuccess;
}

// Also of a device that has failed.
gpuError gpuFree(void* p) {
  if (p == nullptr) return gpuSuccess;
  emulator::Device& d = TheDevice();
  const std::lock_guard<std::mutex> lock(d.mutex);
  const auto found = d.allocations.find(p);
  if (found == d.allocations.end()) return gpuErrorInvalidValue;
  d.used -= found->second;
  d.allocations.erase(found);
  std::free(p);
  return gpuSuccess;
}

gpuError gpuHostMalloc(void** p, size_t bytes) {
  const gpuError error = Begin(Call::kHostMalloc);
  if (error != gpuSuccess) return error;
  *p = std::malloc(bytes);
  return *p != nullptr ? gpuSuccess : gpuErrorMemoryAllocation;
}
gpuError gpuHostFree(void* p) {
  std::free(p);
  return gpuSuccess;
}

gpuError gpuMemcpyAsync(void* to, const void* from, size_t bytes, gpuMemcpyKind, gpuStream stream) {
  const gpuError error = Begin(Call::kCopy);
  if (error != gpuSuccess) return error;
  return Submit(stream, [=] {
    if (bytes != 0) std::memmove(to, from, bytes);  // none of an empty vector, which may be null
    return gpuSuccess;
  });
}
gpuError gpuMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, gpuStream stream) {
  return gpuMemcpyAsync(to, from, bytes, gpuMemcpyDeviceToDevice, stream);
}
gpuError gpuDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device != peer ? 1 : 0;
  return gpuSuccess;
}

gpuError gpuStreamCreate(gpuStream* stream) {
  const gpuError error = Begin(Call::kNone);
  if (error != gpuSuccess) return error;
  *stream = new (std::nothrow) emulator::Stream;
  return *stream != nullptr ? gpuSuccess : gpuErrorMemoryAllocation;
}
gpuError gpuStreamDestroy(gpuStream stream) {
  delete stream;
  return gpuSuccess;
}
gpuError gpuStreamSynchronize(gpuStream) { return Begin(Call::kSynchronize); }

gpuError gpuStreamBeginCapture(gpuStream stream) {
  const gpuError error = Begin(Call::kCapture);
  if (error != gpuSuccess) return error;
  if (stream->capturing != nullptr) return gpuErrorInvalidValue;
  stream->capturing = std::make_unique<emulator::Graph>();
  return gpuSuccess;
}
gpuError gpuStreamEndCapture(gpuStream stream, gpuGraph* graph) {
  if (stream->capturing == nullptr) return gpuErrorInvalidValue;
  // As with real ones: of a device that has failed there is no graph.
  const gpuError error = Begin(Call::kNone);
  std::unique_ptr<emulator::Graph> captured = std::move(stream->capturing);
  *graph = error == gpuSuccess ? captured.release() : nullptr;
  return error;
}

gpuError gpuEventCreate(gpuEvent* event) {
  *event = new (std::nothrow) emulator::Event;
  return *event != nullptr ? gpuSuccess : gpuErrorMemoryAllocation;
}
gpuError gpuEventCreateUntimed(gpuEvent* event) { return gpuEventCreate(event); }
gpuError gpuEventRecord(gpuEvent event, gpuStream stream) {
  const gpuError error = Begin(Call::kNone);
  if (error != gpuSuccess) return error;
  return Submit(stream, [=] {
    event->time = std::chrono::steady_clock::now();
    return gpuSuccess;
  });
}
gpuError gpuEventQuery(gpuEvent) { return Begin(Call::kNone); }
gpuError gpuEventSynchronize(gpuEvent) { return Begin(Call::kSynchronize); }
gpuError gpuEventElapsedTime(float* ms, gpuEvent from, gpuEvent to) {
  *ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return gpuSuccess;
}
gpuError gpuEventDestroy(gpuEvent event) {
  delete event;
  return gpuSuccess;
}

gpuError gpuGraphInstantiate(gpuGraphExec* exec, gpuGraph graph) {
  const gpuError error = Begin(Call::kInstantiate);
  if (error != gpuSuccess) return error;
  *exec = new emulator::Graph(*graph);
  return gpuSuccess;
}
bool gpuGraphExecTryUpdate(gpuGraphExec exec, gpuGraph graph) {
  if (exec->works.size() != graph->works.size()) return false;
  exec->works = graph->works;
  return true;
}
gpuError gpuGraphLaunch(gpuGraphExec exec, gpuStream) {
  gpuError error = Begin(Call::kStart);
  for (size_t i = 0; i < exec->works.size() && error == gpuSuccess; ++i) error = exec->works[i]();
  return error;
}
gpuError gpuGraphExecDestroy(gpuGraphExec exec) {
  delete exec;
  return gpuSuccess;
}
gpuError gpuGraphDestroy(gpuGraph graph) {
  delete graph;
  return gpuSuccess;
}

gpuError gpuAllowShared(const void*, int bytes) {
  return bytes <= 64 << 10 ? gpuSuccess : gpuErrorInvalidValue;
}

gpuError gpuStart(const trine::hip::Launch& launch, gpuStream stream, bool) {
  const gpuError error = Begin(Call::kStart);
  if (error != gpuSuccess) return error;
  return Submit(stream, [launch] { return emulator::RunNow(launch); });
}
