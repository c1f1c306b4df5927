// A matrix product as its makers of launches see it: matmul, or moe_matmul with ids.
#ifndef TRINE_KERNELS_HIP_PRODUCT_H_
#define TRINE_KERNELS_HIP_PRODUCT_H_

#include <cstdint>

#include "kernels/hip/quantized.h"
#include "kernels/hip/tensor.h"

namespace trine::hip {

struct Product {
  Tensor w;            // [k, n]; of experts [k, n, experts]; perhaps packed
  Tensor x;            // f32 [k, m]; of experts [k, used or 1, m]
  QuantizedColumns q;  // x in whole blocks, its rows in order: what quantised weights are given
  Tensor bias;         // f32 [n]; of experts [n, experts]; or absent
  Tensor y;            // f32 [n, m]; of experts [n, used, m]
  Tensor ids;          // i32 [used, m] of experts; else absent
  Tensor addend;  // f32, of y's shape, perhaps y itself: what is added to the result; or absent

  // Columns of y: each by itself an x, a y, and for experts an id.
  int64_t columns() const { return y.dims[1] * y.dims[2]; }
};

// What multiplies tiles of signed bytes.
enum class MatrixUnit {
  kDot4,        // four products at a time
  kMma,         // NVIDIA: mma.sync of 16 x 8 x 32, groups of 32 lanes
  kWmma,        // RDNA 3: 16 x 16 x 16, waves of 32
  kMfma,        // CDNA 1 and 2: 16 x 16 x 16, waves of 64
  kWmmaGfx12,   // RDNA 4: as kWmma, values in other lanes
  kMfmaGfx942,  // CDNA 3: 16 x 16 x 32
};

// What launches depend on of a device; no result does.
struct DeviceShape {
  uint32_t multiprocessors = 16;
  uint32_t shared_bytes = 48 << 10;  // of a block
  MatrixUnit unit = MatrixUnit::kDot4;
};

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_PRODUCT_H_
