// The calls of a GPU's runtime that the host side uses, under one name on all platforms.
//
// No vendor's struct crosses this header, because their layouts change between versions. Attributes
// are read one at a time. emulated_runtime.h declares the emulator's own functions.
#pragma once

#include <cstddef>

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/gpu/platform.h"

#if defined(TRINE_GPU_HOST)
#include "kernels/hip/gpu/emulated_runtime.h"
#else

#if defined(TRINE_GPU_AMD)
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__ 1
#endif
#include <hip/hip_runtime_api.h>
#define TRINE_GPU(name) hip##name
#else
#define TRINE_GPU(name) cuda##name
#endif

using gpuError = TRINE_GPU(Error_t);
using gpuStream = TRINE_GPU(Stream_t);
using gpuEvent = TRINE_GPU(Event_t);
using gpuGraph = TRINE_GPU(Graph_t);
using gpuGraphExec = TRINE_GPU(GraphExec_t);
using gpuMemcpyKind = TRINE_GPU(MemcpyKind);

// These have the same names and arguments on both platforms.
#define gpuSuccess TRINE_GPU(Success)
#define gpuErrorNoDevice TRINE_GPU(ErrorNoDevice)
#define gpuErrorNotReady TRINE_GPU(ErrorNotReady)
#define gpuErrorInvalidValue TRINE_GPU(ErrorInvalidValue)
#define gpuErrorMemoryAllocation TRINE_GPU(ErrorMemoryAllocation)
#define gpuMemcpyHostToDevice TRINE_GPU(MemcpyHostToDevice)
#define gpuMemcpyDeviceToHost TRINE_GPU(MemcpyDeviceToHost)
#define gpuMemcpyDeviceToDevice TRINE_GPU(MemcpyDeviceToDevice)
#define gpuGetDeviceCount TRINE_GPU(GetDeviceCount)
#define gpuSetDevice TRINE_GPU(SetDevice)
#define gpuGetErrorString TRINE_GPU(GetErrorString)
#define gpuGetLastError TRINE_GPU(GetLastError)
#define gpuDeviceGetPciBusId TRINE_GPU(DeviceGetPCIBusId)
#define gpuRuntimeGetVersion TRINE_GPU(RuntimeGetVersion)
#define gpuDriverGetVersion TRINE_GPU(DriverGetVersion)
#define gpuMemGetInfo TRINE_GPU(MemGetInfo)
#define gpuMalloc TRINE_GPU(Malloc)
#define gpuFree TRINE_GPU(Free)
#define gpuMemcpyAsync TRINE_GPU(MemcpyAsync)
#define gpuMemcpyPeerAsync TRINE_GPU(MemcpyPeerAsync)
#define gpuDeviceCanAccessPeer TRINE_GPU(DeviceCanAccessPeer)
#define gpuStreamDestroy TRINE_GPU(StreamDestroy)
#define gpuStreamSynchronize TRINE_GPU(StreamSynchronize)
#define gpuStreamEndCapture TRINE_GPU(StreamEndCapture)
#define gpuEventCreate TRINE_GPU(EventCreate)
#define gpuEventRecord TRINE_GPU(EventRecord)
#define gpuEventSynchronize TRINE_GPU(EventSynchronize)
#define gpuEventQuery TRINE_GPU(EventQuery)
#define gpuEventElapsedTime TRINE_GPU(EventElapsedTime)
#define gpuEventDestroy TRINE_GPU(EventDestroy)
#define gpuGraphLaunch TRINE_GPU(GraphLaunch)
#define gpuGraphExecDestroy TRINE_GPU(GraphExecDestroy)
#define gpuGraphDestroy TRINE_GPU(GraphDestroy)

// Sets how threads wait for the current device. Call before its first stream is made.
inline gpuError gpuSetWait(GpuWait wait) {
  constexpr unsigned kFlags[] = {TRINE_GPU(DeviceScheduleSpin), TRINE_GPU(DeviceScheduleYield),
                                 TRINE_GPU(DeviceScheduleBlockingSync)};
  return TRINE_GPU(SetDeviceFlags)(kFlags[static_cast<int>(wait)]);
}

inline gpuError gpuStreamCreate(gpuStream* stream) {
  return TRINE_GPU(StreamCreateWithFlags)(stream, TRINE_GPU(StreamNonBlocking));
}
inline gpuError gpuStreamBeginCapture(gpuStream stream) {
  return TRINE_GPU(StreamBeginCapture)(stream, TRINE_GPU(StreamCaptureModeThreadLocal));
}
inline gpuError gpuEventCreateUntimed(gpuEvent* event) {
  return TRINE_GPU(EventCreateWithFlags)(event, TRINE_GPU(EventDisableTiming));
}
// Makes later work on the stream wait for the event's last record.
inline gpuError gpuStreamWait(gpuStream stream, gpuEvent event) {
  return TRINE_GPU(StreamWaitEvent)(stream, event, 0);
}

// Pins host memory in place, so that kernels of all devices see it at the host's address. Fails if
// a device would see it at another address.
inline gpuError gpuHostRegister(void* p, size_t bytes) {
  gpuError error = TRINE_GPU(HostRegister)(
      p, bytes, TRINE_GPU(HostRegisterPortable) | TRINE_GPU(HostRegisterMapped));
  if (error != gpuSuccess) return error;
  void* seen = nullptr;
  error = TRINE_GPU(HostGetDevicePointer)(&seen, p, 0);
  if (error == gpuSuccess && seen != p) error = gpuErrorInvalidValue;
  if (error != gpuSuccess) (void)TRINE_GPU(HostUnregister)(p);
  return error;
}
#define gpuHostUnregister TRINE_GPU(HostUnregister)

// Copies `rows` pieces of `bytes` each from places that are `pitch` bytes apart, one behind the
// other.
inline gpuError gpuMemcpyRowsAsync(void* to, const void* from, size_t bytes, size_t rows,
                                   size_t pitch, gpuMemcpyKind kind, gpuStream stream) {
  return TRINE_GPU(Memcpy2DAsync)(to, bytes, from, pitch, bytes, rows, kind, stream);
}

// Gives the current device access to another device's memory. Repeating the call is no error.
inline gpuError gpuEnablePeerAccess(int peer) {
  const gpuError error = TRINE_GPU(DeviceEnablePeerAccess)(peer, 0);
  if (error != TRINE_GPU(ErrorPeerAccessAlreadyEnabled)) return error;
  (void)gpuGetLastError();
  return gpuSuccess;
}

enum class gpuAttribute {
  kWarpSize,
  kMultiprocessors,
  kL2Bytes,
  kIntegrated,
  kSharedBytes,       // the shared memory of a block, by default
  kAskedSharedBytes,  // that of a launch that asks for more, where launches can
  kMajor,             // NVIDIA: compute capability
  kMinor,
};

#if defined(TRINE_GPU_AMD)
// HIP pins no memory that it may not write.
inline gpuError gpuHostRegisterReadOnly(void*, size_t) { return hipErrorNotSupported; }
inline gpuError gpuHostMalloc(void** p, size_t bytes) {
  return hipHostMalloc(p, bytes, hipHostMallocDefault);
}
inline gpuError gpuHostFree(void* p) { return hipHostFree(p); }
inline gpuError gpuGraphInstantiate(gpuGraphExec* exec, gpuGraph graph) {
  return hipGraphInstantiate(exec, graph, nullptr, nullptr, 0);
}
inline bool gpuGraphExecTryUpdate(gpuGraphExec exec, gpuGraph graph) {
  hipGraphNode_t node = nullptr;
  hipGraphExecUpdateResult result{};
  const bool updated = hipGraphExecUpdate(exec, graph, &node, &result) == hipSuccess &&
                       result == hipGraphExecUpdateSuccess;
  if (!updated) (void)hipGetLastError();
  return updated;
}
inline gpuError gpuGetName(char* name, int bytes, int device) {
  return hipDeviceGetName(name, bytes, device);
}
inline hipDeviceAttribute_t gpuAttributeOf(gpuAttribute attribute) {
  switch (attribute) {
    case gpuAttribute::kWarpSize:
      return hipDeviceAttributeWarpSize;
    case gpuAttribute::kMultiprocessors:
      return hipDeviceAttributeMultiprocessorCount;
    case gpuAttribute::kL2Bytes:
      return hipDeviceAttributeL2CacheSize;
    case gpuAttribute::kIntegrated:
      return hipDeviceAttributeIntegrated;
    case gpuAttribute::kMajor:
      return hipDeviceAttributeComputeCapabilityMajor;
    case gpuAttribute::kMinor:
      return hipDeviceAttributeComputeCapabilityMinor;
    default:
      return hipDeviceAttributeMaxSharedMemoryPerBlock;
  }
}
inline gpuError gpuGetAttribute(int* value, gpuAttribute attribute, int device) {
  return hipDeviceGetAttribute(value, gpuAttributeOf(attribute), device);
}
#else
// Pins memory that is only read, such as the pages of a file, so that kernels of all devices see it
// at the host's address.
inline gpuError gpuHostRegisterReadOnly(void* p, size_t bytes) {
  gpuError error = cudaHostRegister(
      p, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly);
  if (error != cudaSuccess) return error;
  void* seen = nullptr;
  error = cudaHostGetDevicePointer(&seen, p, 0);
  if (error == cudaSuccess && seen != p) error = cudaErrorInvalidValue;
  if (error != cudaSuccess) (void)cudaHostUnregister(p);
  return error;
}
inline gpuError gpuHostMalloc(void** p, size_t bytes) {
  return cudaHostAlloc(p, bytes, cudaHostAllocDefault);
}
inline gpuError gpuHostFree(void* p) { return cudaFreeHost(p); }
inline gpuError gpuGraphInstantiate(gpuGraphExec* exec, gpuGraph graph) {
  return cudaGraphInstantiate(exec, graph, 0);
}
inline bool gpuGraphExecTryUpdate(gpuGraphExec exec, gpuGraph graph) {
  cudaGraphExecUpdateResultInfo info{};
  const bool updated = cudaGraphExecUpdate(exec, graph, &info) == cudaSuccess &&
                       info.result == cudaGraphExecUpdateSuccess;
  if (!updated) (void)cudaGetLastError();
  return updated;
}
inline gpuError gpuGetName(char* name, int bytes, int device) {
  cudaDeviceProp properties;
  const gpuError error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess || bytes < 1) return error;
  int i = 0;
  for (; i < bytes - 1 && properties.name[i] != 0; ++i) name[i] = properties.name[i];
  name[i] = 0;
  return error;
}
inline cudaDeviceAttr gpuAttributeOf(gpuAttribute attribute) {
  switch (attribute) {
    case gpuAttribute::kWarpSize:
      return cudaDevAttrWarpSize;
    case gpuAttribute::kMultiprocessors:
      return cudaDevAttrMultiProcessorCount;
    case gpuAttribute::kL2Bytes:
      return cudaDevAttrL2CacheSize;
    case gpuAttribute::kIntegrated:
      return cudaDevAttrIntegrated;
    case gpuAttribute::kMajor:
      return cudaDevAttrComputeCapabilityMajor;
    case gpuAttribute::kMinor:
      return cudaDevAttrComputeCapabilityMinor;
    case gpuAttribute::kAskedSharedBytes:
      return cudaDevAttrMaxSharedMemoryPerBlockOptin;
    default:
      return cudaDevAttrMaxSharedMemoryPerBlock;
  }
}
inline gpuError gpuGetAttribute(int* value, gpuAttribute attribute, int device) {
  return cudaDeviceGetAttribute(value, gpuAttributeOf(attribute), device);
}
#endif

// Starts a kernel; no other function does that. `early`: the kernel may begin before the previous
// kernel has ended. REQUIRES: gpuCanStartEarly, and the last work on the stream is that kernel.
inline gpuError gpuStart(const trine::hip::Launch& launch, gpuStream stream, bool early = false) {
  const auto dim = [](const trine::hip::Dim& d) { return dim3(d.x, d.y, d.z); };
  void* args[] = {const_cast<unsigned char*>(launch.args)};
#if defined(TRINE_GPU_NVIDIA)
  constexpr uint32_t kByDefault = 48 << 10;
  if (launch.shared_bytes > kByDefault) {
    const gpuError error =
        cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(launch.shared_bytes));
    if (error != gpuSuccess) return error;
  }
  if (early) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim(launch.grid);
    config.blockDim = dim(launch.block);
    config.dynamicSmemBytes = launch.shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cudaLaunchKernelExC(&config, launch.kernel, args);
  }
#else
  (void)early;
#endif
  return TRINE_GPU(LaunchKernel)(launch.kernel, dim(launch.grid), dim(launch.block), args,
                                 launch.shared_bytes, stream);
}

// Returns whether the kernel waits for earlier kernels by itself (AwaitEarlier) on the current
// device. All kernels of this project are compiled alike.
inline bool gpuCanStartEarly([[maybe_unused]] const void* kernel) {
#if defined(TRINE_GPU_NVIDIA)
  cudaFuncAttributes attributes;
  if (cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess) {
    return attributes.ptxVersion >= 90 && attributes.binaryVersion >= 90;
  }
  (void)cudaGetLastError();
#endif
  return false;
}

// Returns whether a kernel was compiled for the current device; false if that can't be found out.
inline bool gpuHasCode(const void* kernel) {
#if defined(TRINE_GPU_AMD)
  hipFuncAttributes attributes;
#else
  cudaFuncAttributes attributes;
#endif
  const bool has = TRINE_GPU(FuncGetAttributes)(&attributes, kernel) == gpuSuccess;
  if (!has) (void)gpuGetLastError();
  return has;
}

#endif  // !TRINE_GPU_HOST
