// Does what a plugin does first, in a shared object with all kernels.
#include "kernels/hip/gpu/runtime.h"

extern "C" __attribute__((visibility("default"))) int HipDeviceCount(int* count) {
  *count = -1;
  return gpuGetDeviceCount(count) == gpuSuccess ? 0 : 1;
}

extern "C" __attribute__((visibility("default"))) const char* HipTargets() {
  return TRINE_GPU_ARCHS;
}
