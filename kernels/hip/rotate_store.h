// What goes before attention, as one launch: rope of q, rope of k, and the stores of k and of v
// into their caches. Any of the parts may be absent.
#ifndef TRINE_KERNELS_HIP_ROTATE_STORE_H_
#define TRINE_KERNELS_HIP_ROTATE_STORE_H_

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/tensor.h"
#include "kernels/reference/ops.h"

namespace trine::hip {

// q, k, v and the rotated ones are [d, heads, tokens], caches [d, block_positions, kv_heads,
// blocks] of f32, f16, bf16 or q8_kv. A rotated one may be the view of what is rotated; nothing
// else that is written overlaps anything.
struct RotateStore {
  reference::RopeMode mode = reference::RopeMode::kInterleaved;
  Tensor table;           // [2 * pairs, tokens]; absent: nothing is rotated
  Tensor q, rotated_q;    // both or none
  Tensor k, rotated_k;    // the latter where it is wanted besides in the cache
  Tensor key_cache;       // absent: k is not stored
  Tensor v, value_cache;  // both or none
  Tensor slots;           // i32 [tokens], where something is stored
};

// False where k is rotated in place and stored as q8_kv: blocks of a row would read what others
// have written. That takes a launch for the rope and one for the stores.
bool CanRotateStore(const RotateStore& work);

Launch RotateStoreLaunch(const RotateStore& work);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_ROTATE_STORE_H_
