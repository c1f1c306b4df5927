// Float sums of 32 classes, a lane each (docs/numerics.md, "Sums").
#ifndef TRINE_KERNELS_HIP_CLASS_SUMS_H_
#define TRINE_KERNELS_HIP_CLASS_SUMS_H_

#include "kernels/hip/gpu/device.h"

namespace trine::hip {

// The classes joined by halves: all lanes of the group get the total.
TRINE_DEVICE float JoinClasses(float class_sum) {
  for (int half = kLanes / 2; half > 0; half /= 2) class_sum = class_sum + LaneXor(class_sum, half);
  return class_sum;
}

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_CLASS_SUMS_H_
