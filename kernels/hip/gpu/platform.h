// Says which of three compilers a source is for, and gives one name to what they have in common.
//
//   TRINE_GPU_AMD     hipcc or clang -x hip; host files by any compiler
//   TRINE_GPU_NVIDIA  nvcc; host files by any compiler
//   TRINE_GPU_HOST    plain C++: kernels run in the emulator (emulator.h)
//
// The build defines one of these as 1, and includes amd_compiler.h in AMD's device sources. Kernels
// never name a vendor's type or intrinsic: runtime.h has the calls of the host side, device.h the
// types and functions of kernels.
#pragma once

#if defined(TRINE_GPU_AMD) + defined(TRINE_GPU_NVIDIA) + defined(TRINE_GPU_HOST) != 1
#error "The build says for which platform this is: one of TRINE_GPU_AMD, _NVIDIA and _HOST"
#endif

#if defined(TRINE_GPU_NVIDIA)
#include <cuda_runtime.h>
#endif

#if defined(TRINE_GPU_HOST)
#define TRINE_DEVICE inline __attribute__((always_inline))
// For functions that many kernels share: the emulator compiles them once.
#define TRINE_DEVICE_SHARED inline __attribute__((noinline))
#define TRINE_KERNEL(threads) static void
#define TRINE_KERNEL_RESIDENT(threads, blocks) static void
#define TRINE_UNROLL
#define TRINE_UNROLL_MORE
#define TRINE_ROLLED
#elif defined(__HIPCC__) || defined(__CUDACC__)
#define TRINE_DEVICE __device__ __forceinline__
#define TRINE_DEVICE_SHARED TRINE_DEVICE
// `threads`: the most threads of a block that the kernel is started with.
#define TRINE_KERNEL(threads) __global__ void __launch_bounds__(threads)
// Limits a kernel's registers so that `blocks` blocks fit on a multiprocessor, if the compiler can
// be told to.
#if defined(TRINE_GPU_NVIDIA)
#define TRINE_KERNEL_RESIDENT(threads, blocks) __global__ void __launch_bounds__(threads, blocks)
#else
#define TRINE_KERNEL_RESIDENT(threads, blocks) TRINE_KERNEL(threads)
#endif
#define TRINE_UNROLL _Pragma("unroll")
// For a loop with a large body: AMD's compilers run out of registers if they unroll it as well.
#if defined(TRINE_GPU_AMD)
#define TRINE_UNROLL_MORE _Pragma("unroll 1")
#define TRINE_ROLLED _Pragma("unroll 1")  // AMD's compilers would unroll it unasked
#else
#define TRINE_UNROLL_MORE TRINE_UNROLL
#define TRINE_ROLLED
#endif
#endif
