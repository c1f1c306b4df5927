// The runtime of runtime.h over the emulator: one device, in the host's memory.
//
// Work is done when it is submitted, except under capture. As with a real device, an error of a
// kernel stays: every later call fails with it until the process ends, or Reset.
#ifndef TRINE_KERNELS_HIP_GPU_EMULATED_RUNTIME_H_
#define TRINE_KERNELS_HIP_GPU_EMULATED_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/hip/gpu/launch.h"

enum gpuError {
  gpuSuccess = 0,
  gpuErrorInvalidValue = 1,
  gpuErrorMemoryAllocation = 2,
  gpuErrorNoDevice = 100,
  gpuErrorNotReady = 600,
  gpuErrorLaunchFailure = 719,
};

namespace trine::hip::emulator {

struct Stream;
struct Event;
struct Graph;

// What a test can make fail.
enum class Call {
  kNone,
  kMalloc,
  kHostMalloc,
  kCopy,
  kStart,
  kCapture,
  kInstantiate,
  kSynchronize
};

struct DeviceSettings {
  uint64_t memory_bytes = uint64_t{1} << 36;
  uint32_t devices = 1;
  bool integrated = false;
  // The call of this kind that fails, counted from 1, and all of them from there on: allocations
  // for want of memory, all others with an error that stays.
  Call failing = Call::kNone;
  uint64_t failing_from = 1;
};

// Forgets errors and counts, too. Allocations stay valid.
void Reset(const DeviceSettings& settings);

// What the last kernel that failed did wrong; "" if none did.
std::string LastFailure();

}  // namespace trine::hip::emulator

using gpuStream = trine::hip::emulator::Stream*;
using gpuEvent = trine::hip::emulator::Event*;
using gpuGraph = trine::hip::emulator::Graph*;
using gpuGraphExec = trine::hip::emulator::Graph*;

enum gpuMemcpyKind { gpuMemcpyHostToDevice, gpuMemcpyDeviceToHost, gpuMemcpyDeviceToDevice };
enum class gpuAttribute {
  kWarpSize,
  kMultiprocessors,
  kL2Bytes,
  kIntegrated,
  kSharedBytes,
  kSharedBytesOptIn,
  kMajor,
  kMinor,
};

gpuError gpuGetDeviceCount(int* count);
gpuError gpuSetDevice(int device);
const char* gpuGetErrorString(gpuError error);
const char* gpuGetErrorName(gpuError error);
gpuError gpuGetLastError();
gpuError gpuGetName(char* name, int bytes, int device);
gpuError gpuGetAttribute(int* value, gpuAttribute attribute, int device);
gpuError gpuDeviceGetPciBusId(char* id, int bytes, int device);
gpuError gpuRuntimeGetVersion(int* version);
gpuError gpuDriverGetVersion(int* version);
gpuError gpuMemGetInfo(size_t* available, size_t* total);
gpuError gpuMalloc(void** p, size_t bytes);
gpuError gpuFree(void* p);
gpuError gpuHostMalloc(void** p, size_t bytes);
gpuError gpuHostFree(void* p);
gpuError gpuMemcpyAsync(void* to, const void* from, size_t bytes, gpuMemcpyKind kind,
                        gpuStream stream);
gpuError gpuMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                            size_t bytes, gpuStream stream);
gpuError gpuDeviceCanAccessPeer(int* can, int device, int peer);
gpuError gpuStreamCreate(gpuStream* stream);
gpuError gpuStreamDestroy(gpuStream stream);
gpuError gpuStreamSynchronize(gpuStream stream);
gpuError gpuStreamBeginCapture(gpuStream stream);
gpuError gpuStreamEndCapture(gpuStream stream, gpuGraph* graph);
gpuError gpuEventCreate(gpuEvent* event);
gpuError gpuEventCreateUntimed(gpuEvent* event);
gpuError gpuEventRecord(gpuEvent event, gpuStream stream);
gpuError gpuEventQuery(gpuEvent event);
gpuError gpuEventSynchronize(gpuEvent event);
gpuError gpuEventElapsedTime(float* ms, gpuEvent from, gpuEvent to);
gpuError gpuEventDestroy(gpuEvent event);
gpuError gpuGraphInstantiate(gpuGraphExec* exec, gpuGraph graph);
bool gpuGraphExecTryUpdate(gpuGraphExec exec, gpuGraph graph);
gpuError gpuGraphLaunch(gpuGraphExec exec, gpuStream stream);
gpuError gpuGraphExecDestroy(gpuGraphExec exec);
gpuError gpuGraphDestroy(gpuGraph graph);
gpuError gpuAllowShared(const void* kernel, int bytes);
// Kernels run one after the other, whatever `early` says.
gpuError gpuStart(const trine::hip::Launch& launch, gpuStream stream, bool early = false);
inline bool gpuCanStartEarly(const void*) { return false; }

#endif  // TRINE_KERNELS_HIP_GPU_EMULATED_RUNTIME_H_
