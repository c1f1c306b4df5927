// The runtime of runtime.h over the emulator: devices in the host's memory.
//
// Work is done when it is submitted, except under capture; or, where settings say so, as late as
// somebody waits for it, so that what streams leave unordered shows. As with a real device, an
// error of a kernel stays: every later call on that device fails with it until the process ends, or
// Reset.
#ifndef TRINE_KERNELS_HIP_GPU_EMULATED_RUNTIME_H_
#define TRINE_KERNELS_HIP_GPU_EMULATED_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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
  kSynchronize,
  kStream,    // making one
  kEvent,     // making, recording, waiting on a stream
  kRegister,  // of host memory; refused, and nothing is lost
  kPeer       // a copy between devices
};

// When submitted work is done: at once, or when it is waited for; then streams go on in turn as far
// as they can, the oldest first, the newest first, or in an order drawn by the emulator's seed.
enum class Pace { kAtOnce, kOldest, kNewest, kRandom };

// What copies between two devices are worth.
enum class Peers { kGood, kNone, kLying };

struct DeviceSettings {
  uint64_t memory_bytes = uint64_t{1} << 36;  // of each
  uint32_t devices = 1;
  bool integrated = false;
  bool has_code = true;   // whether kernels were compiled for them
  bool crashes = false;   // the first call of all ends the process
  bool registers = true;  // host memory can be pinned where it is
  Pace pace = Pace::kAtOnce;
  Peers peers = Peers::kGood;
  // The call of this kind that fails, counted from 1, and all of them from there on: allocations
  // for want of memory, all others with an error that stays.
  Call failing = Call::kNone;
  uint64_t failing_from = 1;
  uint32_t failing_device = 0;
};

// Forgets errors and counts, too. Allocations stay valid.
void Reset(const DeviceSettings& settings);

// What the last kernel that failed did wrong; "" if none did.
std::string LastFailure();

// The most bytes that a device's allocations have had at once, since Reset.
uint64_t PeakBytes(int device);

// What was done, in the order in which it was: for tests of what streams overlap.
struct Done {
  int device = 0;
  uint64_t stream = 0;       // counted as they are made; 0 is the default one
  std::string kernel;        // its label; "" for a copy
  const void* to = nullptr;  // of a copy
  uint64_t bytes = 0;
  bool pinned = false;  // the host's end of it
};
void StartTrace();
std::vector<Done> TakeTrace();

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
gpuError gpuHostRegister(void* p, size_t bytes);
gpuError gpuHostUnregister(void* p);
gpuError gpuMemcpyAsync(void* to, const void* from, size_t bytes, gpuMemcpyKind kind,
                        gpuStream stream);
gpuError gpuMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                            size_t bytes, gpuStream stream);
gpuError gpuDeviceCanAccessPeer(int* can, int device, int peer);
gpuError gpuEnablePeerAccess(int peer);
gpuError gpuStreamCreate(gpuStream* stream);
gpuError gpuStreamDestroy(gpuStream stream);
gpuError gpuStreamSynchronize(gpuStream stream);
gpuError gpuStreamWait(gpuStream stream, gpuEvent event);
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
// Kernels run one after the other, whatever `early` says.
gpuError gpuStart(const trine::hip::Launch& launch, gpuStream stream, bool early = false);
inline bool gpuCanStartEarly(const void*) { return false; }
bool gpuHasCode(const void* kernel);

#endif  // TRINE_KERNELS_HIP_GPU_EMULATED_RUNTIME_H_
