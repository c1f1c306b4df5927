#include "kernels/hip/gpu/emulated_runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "kernels/hip/gpu/emulated_device.h"
#include "kernels/hip/gpu/emulator.h"

namespace trine::hip::emulator {
namespace {

// The most bytes of an allocation that are poisoned, so that reading uninitialised memory shows.
constexpr size_t kPoisoned = 1 << 20;

gpuError RunNow(const Launch& launch, int device, uint64_t stream) {
  const std::string label = launch.label != nullptr ? launch.label : "a kernel";
  Trace({device, stream, label, nullptr, 0, false});
  const std::string wrong = Run(launch);
  return wrong.empty() ? gpuSuccess : Lose(device, label + ": " + wrong);
}

gpuError Write(char* to, int bytes, const std::string& text) {
  if (bytes < 1) return gpuErrorInvalidValue;
  std::snprintf(to, static_cast<size_t>(bytes), "%s", text.c_str());
  return gpuSuccess;
}

int DeviceOf(gpuStream stream) { return stream != nullptr ? stream->device : CurrentDevice(); }
uint64_t NumberOf(gpuStream stream) { return stream != nullptr ? stream->number : 0; }

// As with real devices, memory that is not pinned has been read, or written, when the call returns.
gpuError Copy(void* to, const void* from, size_t bytes, gpuMemcpyKind kind, gpuStream stream) {
  const void* host = kind == gpuMemcpyHostToDevice ? from : to;
  const bool of_host = kind != gpuMemcpyDeviceToDevice;
  const bool pinned = of_host && IsPinned(host, bytes);
  std::shared_ptr<std::vector<char>> kept;
  const bool captured = stream != nullptr && stream->capturing != nullptr;
  if (kind == gpuMemcpyHostToDevice && !pinned && !captured) {
    const auto* begin = static_cast<const char*>(from);
    kept = std::make_shared<std::vector<char>>(begin, begin + bytes);
  }
  const Done done{DeviceOf(stream), NumberOf(stream), "", to, bytes, pinned};
  const gpuError error = Submit(stream, {[=] {
                                           Trace(done);
                                           // An empty vector may have null, which memmove refuses.
                                           if (bytes != 0)
                                             std::memmove(to, kept ? kept->data() : from, bytes);
                                           return gpuSuccess;
                                         },
                                         nullptr, nullptr, 0});
  if (kind == gpuMemcpyDeviceToHost && !pinned && !captured) Finish(stream);
  return error;
}

}  // namespace
}  // namespace trine::hip::emulator

namespace emulator = trine::hip::emulator;
using emulator::Begin;
using emulator::Call;
using emulator::CheckDevice;
using emulator::CurrentDevice;
using emulator::Submit;
using emulator::TheMachine;

gpuError gpuGetDeviceCount(int* count) {
  emulator::DeviceSettings settings;
  {
    const std::lock_guard<std::mutex> lock(TheMachine().mutex);
    settings = TheMachine().settings;
  }
  if (settings.crashes) std::abort();
  // With an error the count is arbitrary, as some runtimes leave it.
  *count = settings.devices > 0 ? static_cast<int>(settings.devices) : 3;
  return settings.devices > 0 ? gpuSuccess : gpuErrorNoDevice;
}

gpuError gpuSetDevice(int device) {
  const gpuError error = CheckDevice(device);
  if (error == gpuSuccess) emulator::SetCurrentDevice(device);
  return error;
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
      *value = 2;  // launches then have few blocks, each of which costs time here
      break;
    case gpuAttribute::kL2Bytes:
      *value = 1 << 20;
      break;
    case gpuAttribute::kIntegrated: {
      const std::lock_guard<std::mutex> lock(TheMachine().mutex);
      *value = TheMachine().settings.integrated ? 1 : 0;
      break;
    }
    case gpuAttribute::kSharedBytes:
      *value = 48 << 10;
      break;
    case gpuAttribute::kAskedSharedBytes:
      *value = 227 << 10;
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
  const gpuError error = Begin(Call::kNone, CurrentDevice());
  if (error != gpuSuccess) return error;
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  *total = TheMachine().settings.memory_bytes;
  *available = *total - std::min<size_t>(*total, TheMachine().devices[CurrentDevice()].used);
  return gpuSuccess;
}

gpuError gpuMalloc(void** p, size_t bytes) {
  const int device = CurrentDevice();
  const gpuError error = Begin(Call::kMalloc, device);
  if (error != gpuSuccess) return error;
  emulator::Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  emulator::DeviceState& d = m.devices[device];
  if (bytes > m.settings.memory_bytes || d.used > m.settings.memory_bytes - bytes) {
    return gpuErrorMemoryAllocation;
  }
  // Allocates exactly what is asked for, so that a sanitizer sees accesses beyond it.
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes) != 0) return gpuErrorMemoryAllocation;
  std::memset(memory, 0xa5, std::min(bytes, emulator::kPoisoned));
  m.allocations[memory] = {bytes, device};
  d.used += bytes;
  d.peak = std::max(d.peak, d.used);
  *p = memory;
  return gpuSuccess;
}

// Frees memory of a device that has failed, too.
gpuError gpuFree(void* p) {
  if (p == nullptr) return gpuSuccess;
  emulator::FinishAll();
  emulator::Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  const auto found = m.allocations.find(p);
  if (found == m.allocations.end()) return gpuErrorInvalidValue;
  m.devices[found->second.device].used -= found->second.bytes;
  m.allocations.erase(found);
  std::free(p);
  return gpuSuccess;
}

gpuError gpuHostMalloc(void** p, size_t bytes) {
  const gpuError error = Begin(Call::kHostMalloc, CurrentDevice());
  if (error != gpuSuccess) return error;
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes) != 0) return gpuErrorMemoryAllocation;
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  TheMachine().pinned[memory] = bytes;
  *p = memory;
  return gpuSuccess;
}
gpuError gpuHostFree(void* p) {
  const gpuError error = gpuHostUnregister(p);
  if (error == gpuSuccess) std::free(p);
  return error;
}

namespace {

gpuError Register(void* p, size_t bytes, bool emulator::DeviceSettings::*can) {
  const gpuError error = Begin(Call::kRegister, CurrentDevice());
  if (error != gpuSuccess) return error;
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  if (!(TheMachine().settings.*can)) return gpuErrorInvalidValue;
  return TheMachine().pinned.emplace(p, bytes).second ? gpuSuccess : gpuErrorInvalidValue;
}

}  // namespace

gpuError gpuHostRegister(void* p, size_t bytes) {
  return Register(p, bytes, &emulator::DeviceSettings::registers);
}
gpuError gpuHostRegisterReadOnly(void* p, size_t bytes) {
  return Register(p, bytes, &emulator::DeviceSettings::registers_files);
}
gpuError gpuHostUnregister(void* p) {
  emulator::FinishAll();
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  return TheMachine().pinned.erase(p) == 1 ? gpuSuccess : gpuErrorInvalidValue;
}

gpuError gpuMemcpyAsync(void* to, const void* from, size_t bytes, gpuMemcpyKind kind,
                        gpuStream stream) {
  const gpuError error = Begin(Call::kCopy, emulator::DeviceOf(stream));
  return error != gpuSuccess ? error : emulator::Copy(to, from, bytes, kind, stream);
}

gpuError gpuMemcpyRowsAsync(void* to, const void* from, size_t bytes, size_t rows, size_t pitch,
                            gpuMemcpyKind kind, gpuStream stream) {
  gpuError error = Begin(Call::kCopy, emulator::DeviceOf(stream));
  for (size_t row = 0; row < rows && error == gpuSuccess; ++row) {
    error = emulator::Copy(static_cast<std::byte*>(to) + row * bytes,
                           static_cast<const std::byte*>(from) + row * pitch, bytes, kind, stream);
  }
  return error;
}

gpuError gpuMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                            size_t bytes, gpuStream stream) {
  for (const int device : {from_device, to_device}) {
    if (const gpuError error = Begin(Call::kPeer, device); error != gpuSuccess) return error;
  }
  emulator::Peers peers;
  {
    const std::lock_guard<std::mutex> lock(TheMachine().mutex);
    peers = TheMachine().settings.peers;
  }
  if (peers == emulator::Peers::kNone) return gpuErrorInvalidValue;
  const gpuError error = emulator::Copy(to, from, bytes, gpuMemcpyDeviceToDevice, stream);
  if (error != gpuSuccess || peers != emulator::Peers::kLying || bytes == 0) return error;
  return Submit(stream, {[=] {
                           static_cast<unsigned char*>(to)[bytes / 2] ^= 1;
                           return gpuSuccess;
                         },
                         nullptr, nullptr, 0});
}
gpuError gpuDeviceCanAccessPeer(int* can, int device, int peer) {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  *can = device != peer && TheMachine().settings.peers != emulator::Peers::kNone ? 1 : 0;
  return gpuSuccess;
}
gpuError gpuEnablePeerAccess(int peer) { return CheckDevice(peer); }

gpuError gpuStreamCreate(gpuStream* stream) {
  const gpuError error = Begin(Call::kStream, CurrentDevice());
  if (error != gpuSuccess) return error;
  auto made = std::make_unique<emulator::Stream>();
  made->device = CurrentDevice();
  emulator::AddStream(made.get());
  *stream = made.release();
  return gpuSuccess;
}
gpuError gpuStreamDestroy(gpuStream stream) {
  emulator::RemoveStream(stream);
  delete stream;
  return gpuSuccess;
}
gpuError gpuStreamSynchronize(gpuStream stream) {
  const int device = emulator::DeviceOf(stream);
  const gpuError error = Begin(Call::kSynchronize, device);
  emulator::Finish(stream);
  return error != gpuSuccess ? error : emulator::FailureOf(device);
}
gpuError gpuStreamWait(gpuStream stream, gpuEvent event) {
  const gpuError error = Begin(Call::kEvent, stream->device);
  if (error != gpuSuccess) return error;
  return Submit(stream, {nullptr, nullptr, event->passing, 0});
}

gpuError gpuStreamBeginCapture(gpuStream stream) {
  const gpuError error = Begin(Call::kCapture, stream->device);
  if (error != gpuSuccess) return error;
  if (stream->capturing != nullptr) return gpuErrorInvalidValue;
  stream->capturing = std::make_unique<emulator::Graph>();
  return gpuSuccess;
}
gpuError gpuStreamEndCapture(gpuStream stream, gpuGraph* graph) {
  if (stream->capturing == nullptr) return gpuErrorInvalidValue;
  // As on real devices, a capture that has failed gives no graph.
  const gpuError error = Begin(Call::kNone, stream->device);
  std::unique_ptr<emulator::Graph> captured = std::move(stream->capturing);
  *graph = error == gpuSuccess ? captured.release() : nullptr;
  return error;
}

gpuError gpuEventCreate(gpuEvent* event) {
  const gpuError error = Begin(Call::kEvent, CurrentDevice());
  if (error != gpuSuccess) return error;
  *event = new (std::nothrow) emulator::Event;
  return *event != nullptr ? gpuSuccess : gpuErrorMemoryAllocation;
}
gpuError gpuEventCreateUntimed(gpuEvent* event) { return gpuEventCreate(event); }
gpuError gpuEventRecord(gpuEvent event, gpuStream stream) {
  const gpuError error = Begin(Call::kEvent, emulator::DeviceOf(stream));
  if (error != gpuSuccess) return error;
  return Submit(stream, {nullptr, event->passing, nullptr, 0});
}
gpuError gpuEventSynchronize(gpuEvent event) {
  const gpuError error = Begin(Call::kSynchronize, CurrentDevice());
  emulator::Finish(*event->passing);
  return error != gpuSuccess ? error : emulator::FailureOf(CurrentDevice());
}
gpuError gpuEventQuery(gpuEvent event) {
  const gpuError error = Begin(Call::kEvent, CurrentDevice());
  if (error != gpuSuccess) return error;
  const bool ended = emulator::HasPassed(*event->passing);
  if (!ended) emulator::Finish(*event->passing);
  return ended ? emulator::FailureOf(CurrentDevice()) : gpuErrorNotReady;
}
gpuError gpuEventElapsedTime(float* ms, gpuEvent from, gpuEvent to) {
  *ms = std::chrono::duration<float, std::milli>(to->passing->time - from->passing->time).count();
  return gpuSuccess;
}
gpuError gpuEventDestroy(gpuEvent event) {
  delete event;
  return gpuSuccess;
}

gpuError gpuGraphInstantiate(gpuGraphExec* exec, gpuGraph graph) {
  const gpuError error = Begin(Call::kInstantiate, CurrentDevice());
  if (error != gpuSuccess) return error;
  *exec = new emulator::Graph(*graph);
  return gpuSuccess;
}
bool gpuGraphExecTryUpdate(gpuGraphExec exec, gpuGraph graph) {
  if (exec->works.size() != graph->works.size()) return false;
  exec->works = graph->works;
  return true;
}
gpuError gpuGraphLaunch(gpuGraphExec exec, gpuStream stream) {
  gpuError error = Begin(Call::kStart, emulator::DeviceOf(stream));
  for (size_t i = 0; i < exec->works.size() && error == gpuSuccess; ++i) {
    error = Submit(stream, exec->works[i]);
  }
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

bool gpuHasCode(const void*) {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  return TheMachine().settings.has_code;
}

gpuError gpuStart(const trine::hip::Launch& launch, gpuStream stream, bool) {
  const int device = emulator::DeviceOf(stream);
  const gpuError error = Begin(Call::kStart, device);
  if (error != gpuSuccess) return error;
  const uint64_t number = emulator::NumberOf(stream);
  return Submit(stream,
                {[=] { return emulator::RunNow(launch, device, number); }, nullptr, nullptr, 0});
}
