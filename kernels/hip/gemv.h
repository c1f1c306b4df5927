// Products with few columns: matmul of one to eight, and moe_matmul, where each column has weights
// of its own. Any number of columns is right, but from nine on every eight read the weights again.
#ifndef TRINE_KERNELS_HIP_GEMV_H_
#define TRINE_KERNELS_HIP_GEMV_H_

#include <string>

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/product.h"

namespace trine::hip {

// "" if GemvLaunch can do it, or what it can not.
std::string WhyNotGemv(const Product& product);

Launch GemvLaunch(const Product& product, const DeviceShape& shape);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GEMV_H_
