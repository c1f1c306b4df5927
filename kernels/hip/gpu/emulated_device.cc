#include "kernels/hip/gpu/emulated_device.h"

#include <cstdint>
#include <utility>

namespace trine::hip::emulator {
namespace {

thread_local int current_device = 0;

}  // namespace

Machine& TheMachine() {
  static Machine machine;
  return machine;
}

int CurrentDevice() { return current_device; }
void SetCurrentDevice(int device) { current_device = device; }

gpuError Begin(Call call, int device) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  DeviceState& d = m.devices[device];
  if (d.failed != gpuSuccess) return d.failed;
  const uint64_t count = ++d.calls[call];
  if (call == Call::kNone || call != m.settings.failing || count < m.settings.failing_from ||
      device != static_cast<int>(m.settings.failing_device)) {
    return gpuSuccess;
  }
  if (call == Call::kMalloc || call == Call::kHostMalloc) return gpuErrorMemoryAllocation;
  if (call == Call::kRegister) return gpuErrorInvalidValue;
  m.failure = "a fault that was asked for";
  return d.failed = gpuErrorLaunchFailure;
}

gpuError CheckDevice(int device) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  return device >= 0 && device < static_cast<int>(m.settings.devices) ? gpuSuccess
                                                                      : gpuErrorInvalidValue;
}

gpuError Lose(int device, const std::string& why) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  m.failure = why;
  return m.devices[device].failed = gpuErrorLaunchFailure;
}

gpuError FailureOf(int device) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  return m.devices[device].failed;
}

bool IsPinned(const void* p, size_t bytes) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  auto found = m.pinned.upper_bound(p);
  if (found == m.pinned.begin()) return false;
  --found;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(p) -
                                          static_cast<const std::byte*>(found->first));
  return offset <= found->second && bytes <= found->second - offset;
}

void Trace(const Done& done) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  if (m.tracing) m.trace.push_back(done);
}

void Reset(const DeviceSettings& settings) {
  Machine& m = TheMachine();
  const std::lock_guard<std::mutex> lock(m.mutex);
  m.settings = settings;
  for (DeviceState& d : m.devices) {
    d.calls.clear();
    d.failed = gpuSuccess;
    d.peak = d.used;
  }
  m.failure.clear();
}

std::string LastFailure() {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  return TheMachine().failure;
}

uint64_t PeakBytes(int device) {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  return TheMachine().devices[device].peak;
}

void StartTrace() {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  TheMachine().trace.clear();
  TheMachine().tracing = true;
}

std::vector<Done> TakeTrace() {
  const std::lock_guard<std::mutex> lock(TheMachine().mutex);
  TheMachine().tracing = false;
  return std::exchange(TheMachine().trace, {});
}

}  // namespace trine::hip::emulator
