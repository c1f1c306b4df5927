// Which of three compilers a kernel's source is for, and how they spell what they have in common.
//
//   TRINE_GPU_AMD     hipcc or clang -x hip; host files by any compiler
//   TRINE_GPU_NVIDIA  nvcc; host files by any compiler
//   TRINE_GPU_HOST    plain C++: kernels run in the emulator (emulator.h)
//
// The build defines one of them as 1, and gives device sources for AMD amd_compiler.h. Kernels
// never name a vendor's type or intrinsic: runtime.h has the calls of the host's side, device.h
// what kernels compute with.
#ifndef TRINE_KERNELS_HIP_GPU_PLATFORM_H_
#define TRINE_KERNELS_HIP_GPU_PLATFORM_H_

#if defined(TRINE_GPU_AMD) + defined(TRINE_GPU_NVIDIA) + defined(TRINE_GPU_HOST) != 1
#error "The build says for which platform this is: one of TRINE_GPU_AMD, _NVIDIA and _HOST"
#endif

#if defined(TRINE_GPU_NVIDIA)
#include <cuda_runtime.h>
#endif

#if defined(TRINE_GPU_HOST)
#define TRINE_DEVICE inline __attribute__((always_inline))
// Of what many kernels have in common: compiled once.
#define TRINE_DEVICE_SHARED inline __attribute__((noinline))
#define TRINE_KERNEL(threads) static void
#define TRINE_KERNEL_RESIDENT(threads, blocks) static void
#define TRINE_UNROLL
#define TRINE_UNROLL_MORE
#define TRINE_ROLLED
#elif defined(__HIPCC__) || defined(__CUDACC__)
#define TRINE_DEVICE __device__ __forceinline__
#define TRINE_DEVICE_SHARED TRINE_DEVICE
// `threads`: the most that a block of it is started with.
#define TRINE_KERNEL(threads) __global__ void __launch_bounds__(threads)
// Where a compiler can be told: with no more registers than let so many blocks share a
// multiprocessor.
#if defined(TRINE_GPU_NVIDIA)
#define TRINE_KERNEL_RESIDENT(threads, blocks) __global__ void __launch_bounds__(threads, blocks)
#else
#define TRINE_KERNEL_RESIDENT(threads, blocks) TRINE_KERNEL(threads)
#endif
#define TRINE_UNROLL _Pragma("unroll")
// Of a loop with much in it: to unroll it as well is beyond AMD's compilers' registers.
#if defined(TRINE_GPU_AMD)
#define TRINE_UNROLL_MORE _Pragma("unroll 1")
#define TRINE_ROLLED _Pragma("unroll 1")  // they would unroll it unasked
#else
#define TRINE_UNROLL_MORE TRINE_UNROLL
#define TRINE_ROLLED
#endif
#endif

#endif  // TRINE_KERNELS_HIP_GPU_PLATFORM_H_
