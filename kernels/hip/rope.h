// Rotary embedding of heads, by itself.
#ifndef TRINE_KERNELS_HIP_ROPE_H_
#define TRINE_KERNELS_HIP_ROPE_H_

#include "kernels/hip/rotate_store.h"

namespace trine::hip {

// x and y [d, heads, tokens], table [2 * pairs, tokens]. y may be x.
inline Launch RopeLaunch(const Tensor& x, const Tensor& table, reference::RopeMode mode,
                         const Tensor& y) {
  RotateStore work;
  work.mode = mode;
  work.table = table;
  work.q = x;
  work.rotated_q = y;
  return RotateStoreLaunch(work);
}

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_ROPE_H_
