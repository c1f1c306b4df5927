// A matrix product as the host describes it for a launch: matmul, or moe_matmul with ids.
#pragma once

#include <cstdint>

#include "kernels/hip/weights/quantized.h"
#include "kernels/hip/weights/tensor.h"

namespace trine::hip {

struct Product {
  Tensor w;            // [k, n]; with experts [k, n, experts]; may be packed
  Tensor x;            // f32 [k, m]; with experts [k, used or 1, m]
  QuantizedColumns q;  // for quantised weights: x in whole blocks, in the order of its rows
  Tensor bias;         // f32 [n]; with experts [n, experts]; or absent
  Tensor y;            // f32 [n, m]; with experts [n, used, m]
  Tensor ids;          // with experts i32 [used, m]; else absent
  Tensor addend;       // f32, of y's shape, added to the result; may be y itself, or absent

  // Returns the number of columns of y. With experts, each column has an id, and so its own
  // weights.
  int64_t columns() const { return y.dims[1] * y.dims[2]; }
};

// The hardware that multiplies tiles of signed bytes.
enum class MatrixUnit {
  kDot4,        // four products at a time
  kMma,         // NVIDIA: mma.sync of 16 x 8 x 32, groups of 32 lanes
  kWmma,        // RDNA 3: 16 x 16 x 16, waves of 32
  kMfma,        // CDNA 1 and 2: 16 x 16 x 16, waves of 64
  kWmmaGfx12,   // RDNA 4: as kWmma, values in other lanes
  kMfmaGfx942,  // CDNA 3: 16 x 16 x 32
};

// The properties of a device on which launches depend. No result depends on them.
struct DeviceShape {
  uint32_t multiprocessors = 16;
  uint32_t shared_bytes = 48 << 10;  // the most shared memory of a block
  MatrixUnit unit = MatrixUnit::kDot4;
  uint32_t asked_shared_bytes = 0;  // as shared_bytes, for launches that ask for more (gpuStart)
};

}  // namespace trine::hip
