// Defines the words of HIP that clang itself does not know and that kernels and their registration
// need. The build includes this file first, in device sources only.
//
// Device sources do not use ROCm's headers and device libraries: these take most of a small
// source's compile time, once for each target, and a distribution's version might be too old for
// its clang. device.h uses what clang itself has.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>  // malloc and free, which clang's own <new> takes to be declared

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__ inline __attribute__((always_inline))

// The function that the host side of a kernel calls for a start with <<<>>>. No one calls it.
struct dim3 {
  uint32_t x, y, z;
};
extern "C" int hipLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** args,
                               size_t shared_bytes, struct ihipStream_t* stream);
