// Which of three compilers a kernel's source is for, and how they spell what they have in common.
//
//   TRINE_GPU_AMD     hipcc or clang -x hip; host files by any compiler
//   TRINE_GPU_NVIDIA  nvcc; host files by any compiler
//   TRINE_GPU_HOST    plain C++: kernels run in the emulator (emulator.h)
//
// The build defines one of them as 1. Kernels never name a vendor's type or intrinsic: runtime.h
// has the calls of the host's side, device.h what kernels compute with.
#ifndef TRINE_KERNELS_HIP_GPU_PLATFORM_H_
#define TRINE_KERNELS_HIP_GPU_PLATFORM_H_

#if defined(TRINE_GPU_AMD) + defined(TRINE_GPU_NVIDIA) + defined(TRINE_GPU_HOST) != 1
#error "The build says for which platform this is: one of TRINE_GPU_AMD, _NVIDIA and _HOST"
#endif

#if defined(TRINE_GPU_AMD)
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__ 1
#endif
#include <hip/hip_runtime.h>
#elif defined(TRINE_GPU_NVIDIA)
#include <cuda_runtime.h>
#endif

#if defined(TRINE_GPU_HOST)
#define TRINE_DEVICE inline __attribute__((always_inline))
#define TRINE_KERNEL(threads) static void
#define TRINE_KERNEL_OF_BLOCKS(threads, blocks) static void
#define TRINE_UNROLL
#elif defined(__HIPCC__) || defined(__CUDACC__)
#define TRINE_DEVICE __device__ __forceinline__
// `threads`: the most that a block of it is started with.
#define TRINE_KERNEL(threads) __global__ void __launch_bounds__(threads)
// `blocks` of them are to fit a multiprocessor: registers are few enough for that. AMD's compiler
// counts otherwise, and is left to itself.
#if defined(TRINE_GPU_NVIDIA)
#define TRINE_KERNEL_OF_BLOCKS(threads, blocks) __global__ void __launch_bounds__(threads, blocks)
#else
#define TRINE_KERNEL_OF_BLOCKS(threads, blocks) TRINE_KERNEL(threads)
#endif
#define TRINE_UNROLL _Pragma("unroll")
#endif

#endif  // TRINE_KERNELS_HIP_GPU_PLATFORM_H_
