// Rows put into a cache, by themselves.
#ifndef TRINE_KERNELS_HIP_KV_STORE_H_
#define TRINE_KERNELS_HIP_KV_STORE_H_

#include "kernels/hip/rotate_store.h"

namespace trine::hip {

// x [d, kv_heads, tokens] at slots i32 [tokens] of cache [d, block_positions, kv_heads, blocks] of
// f32, f16, bf16 or q8_kv.
inline Launch KvStoreLaunch(const Tensor& x, const Tensor& slots, const Tensor& cache) {
  RotateStore work;
  work.v = x;
  work.slots = slots;
  work.value_cache = cache;
  return RotateStoreLaunch(work);
}

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_KV_STORE_H_
