// The words of HIP that clang leaves to ROCm's headers, as far as kernels and their registration
// need them. The build includes this before all else, in device sources alone.
//
// ROCm's own headers and device libraries are not used there: they take most of the time that a
// small source takes, once for each target, and a distribution's may not know all that its clang
// does. device.h is built on what clang has by itself.
#ifndef TRINE_KERNELS_HIP_GPU_AMD_COMPILER_H_
#define TRINE_KERNELS_HIP_GPU_AMD_COMPILER_H_

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

// What the host's side of a kernel calls when it is started with <<<>>>, which nobody does.
struct dim3 {
  uint32_t x, y, z;
};
extern "C" int hipLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** args,
                               size_t shared_bytes, struct ihipStream_t* stream);

#endif  // TRINE_KERNELS_HIP_GPU_AMD_COMPILER_H_
