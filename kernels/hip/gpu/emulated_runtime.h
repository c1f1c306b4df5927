// Implements runtime.h with the emulator: devices are host memory.
//
// Work is done when it is submitted, except under capture. Settings can delay it until something
// waits for it, to show which work the streams leave unordered. As on a real device, a kernel's
// error stays: every later call on that device fails with it until the process ends, or until
// Reset.
#pragma once

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

// The calls that a test can make fail.
enum class Call {
  kNone,
  kMalloc,
  kHostMalloc,
  kCopy,
  kStart,
  kCapture,
  kInstantiate,
  kSynchronize,
  kStream,    // creating a stream
  kEvent,     // creating an event, recording it, waiting for it on a stream
  kRegister,  // pinning host memory; the call is refused, and no device is lost
  kPeer       // a copy between devices
};

// The time at which submitted work is done: at once, or when something waits for it. In the second
// case streams take turns, each as far as it can go: the oldest first, the newest first, or in a
// random order.
enum class Pace { kAtOnce, kOldest, kNewest, kRandom };

// Says whether copies between two devices are right, refused, or wrong without an error.
enum class Peers { kGood, kNone, kLying };

struct DeviceSettings {
  uint64_t memory_bytes = uint64_t{1} << 36;  // of each device
  uint32_t devices = 1;
  bool integrated = false;
  bool has_code = true;          // kernels were compiled for the devices
  bool crashes = false;          // gpuGetDeviceCount ends the process
  bool registers = true;         // host memory can be pinned in place
  bool registers_files = false;  // so can memory that is only read
  Pace pace = Pace::kAtOnce;
  Peers peers = Peers::kGood;
  // The kind of call that fails. The first call that fails is number `failing_from`, counted from
  // 1; later calls fail too. Allocations run out of memory, pinning is refused, and all other calls
  // fail with an error that stays.
  Call failing = Call::kNone;
  uint64_t failing_from = 1;
  uint32_t failing_device = 0;
};

// Applies settings, and forgets errors and counts. Allocations stay valid.
void Reset(const DeviceSettings& settings);

// Returns why a device was last lost (a kernel's mistake or an injected fault); "" if none was.
std::string LastFailure();

// Returns the most bytes that a device's allocations have had at once, since Reset.
uint64_t PeakBytes(int device);

// A copy or kernel that was done. A trace has these in order, for tests of overlapping streams.
struct Done {
  int device = 0;
  uint64_t stream = 0;       // counted from 1 in order of creation; 0: the default one
  std::string kernel;        // its label; "" for a copy
  const void* to = nullptr;  // target of a copy
  uint64_t bytes = 0;
  bool pinned = false;  // true: the host's end of a copy is pinned
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
  kAskedSharedBytes,
  kMajor,
  kMinor,
};

gpuError gpuGetDeviceCount(int* count);
gpuError gpuSetDevice(int device);
const char* gpuGetErrorString(gpuError error);
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
gpuError gpuHostRegisterReadOnly(void* p, size_t bytes);
gpuError gpuHostUnregister(void* p);
gpuError gpuMemcpyAsync(void* to, const void* from, size_t bytes, gpuMemcpyKind kind,
                        gpuStream stream);
gpuError gpuMemcpyRowsAsync(void* to, const void* from, size_t bytes, size_t rows, size_t pitch,
                            gpuMemcpyKind kind, gpuStream stream);
gpuError gpuMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                            size_t bytes, gpuStream stream);
gpuError gpuDeviceCanAccessPeer(int* can, int device, int peer);
gpuError gpuEnablePeerAccess(int peer);
inline gpuError gpuSetWait(GpuWait) { return gpuSuccess; }
gpuError gpuStreamCreate(gpuStream* stream);
gpuError gpuStreamDestroy(gpuStream stream);
gpuError gpuStreamSynchronize(gpuStream stream);
gpuError gpuStreamWait(gpuStream stream, gpuEvent event);
gpuError gpuStreamBeginCapture(gpuStream stream);
gpuError gpuStreamEndCapture(gpuStream stream, gpuGraph* graph);
gpuError gpuEventCreate(gpuEvent* event);
gpuError gpuEventCreateUntimed(gpuEvent* event);
gpuError gpuEventRecord(gpuEvent event, gpuStream stream);
gpuError gpuEventSynchronize(gpuEvent event);
gpuError gpuEventQuery(gpuEvent event);  // work that is kept for later is done after the answer
gpuError gpuEventElapsedTime(float* ms, gpuEvent from, gpuEvent to);
gpuError gpuEventDestroy(gpuEvent event);
gpuError gpuGraphInstantiate(gpuGraphExec* exec, gpuGraph graph);
bool gpuGraphExecTryUpdate(gpuGraphExec exec, gpuGraph graph);
gpuError gpuGraphLaunch(gpuGraphExec exec, gpuStream stream);
gpuError gpuGraphExecDestroy(gpuGraphExec exec);
gpuError gpuGraphDestroy(gpuGraph graph);
// Ignores `early`: kernels run one after the other.
gpuError gpuStart(const trine::hip::Launch& launch, gpuStream stream, bool early = false);
inline bool gpuCanStartEarly(const void*) { return false; }
bool gpuHasCode(const void* kernel);
