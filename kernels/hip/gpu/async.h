// Copies from global to shared memory that pass no register where a device can do that.
#ifndef TRINE_KERNELS_HIP_GPU_ASYNC_H_
#define TRINE_KERNELS_HIP_GPU_ASYNC_H_

#include "kernels/hip/gpu/device.h"

namespace trine::hip {

// Begins the copy of 16 bytes; both ends are aligned to them.
TRINE_DEVICE void CopyAsync(Word4* shared, const Word4* global) {
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
#else
  *shared = *global;
#endif
}

// The calling thread's copies are done; others see them after they meet.
TRINE_DEVICE void WaitForCopies() {
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GPU_ASYNC_H_
