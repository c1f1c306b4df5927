// Products with few columns: matmul of one to eight, and moe_matmul, where each column has weights
// of its own. Any number of columns is right, but from nine on every eight read the weights again.
#ifndef TRINE_KERNELS_HIP_GEMV_H_
#define TRINE_KERNELS_HIP_GEMV_H_

#include <span>
#include <string>

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/product.h"

namespace trine::hip {

// "" if GemvLaunch can do it, or what it can not.
std::string WhyNotGemv(const Product& product);

Launch GemvLaunch(const Product& product, const DeviceShape& shape);

// Products of one x in one launch, each of which it can do: of the same k, columns, type of weights
// and packing, with the same x and q, without ids. What one writes no other reads. Only a single
// one may have an addend.
inline constexpr size_t kMaxGemvProducts = 4;
Launch GemvLaunch(std::span<const Product> products, const DeviceShape& shape);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GEMV_H_
