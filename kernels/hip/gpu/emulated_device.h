// Inside the emulated runtime: the state of its devices.
#ifndef TRINE_KERNELS_HIP_GPU_EMULATED_DEVICE_H_
#define TRINE_KERNELS_HIP_GPU_EMULATED_DEVICE_H_

#include <map>
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
  std::map<const void*, size_t> pinned;  // the host's memory that devices see
  std::string failure;
  bool tracing = false;
  std::vector<Done> trace;
};
Machine& TheMachine();

// The thread's, as gpuSetDevice left it.
int CurrentDevice();
void SetCurrentDevice(int device);

// Success, or why a call on a device fails before it does anything.
gpuError Begin(Call call, int device);

gpuError CheckDevice(int device);
// The device's own, from now on. `why` is told by LastFailure.
gpuError Lose(int device, const std::string& why);
gpuError FailureOf(int device);

bool IsPinned(const void* p, size_t bytes);
void Trace(const Done& done);

}  // namespace trine::hip::emulator

#endif  // TRINE_KERNELS_HIP_GPU_EMULATED_DEVICE_H_
