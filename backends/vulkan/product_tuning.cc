#include "backends/vulkan/product_tuning.h"

#include <algorithm>
#include <bit>

namespace trine::vulkan {

ProductTuning ChooseProductTuning(const DeviceCaps& caps, const Tuning& tuning) {
  ProductTuning products;
  products.int_dot = tuning.int_dot;
  // Two rows of floats to a workgroup, or eight of blocks, are few enough to end early.
  products.gemv_workgroup = std::clamp<uint32_t>(std::bit_floor(tuning.gemv_workgroup), 64,
                                                 std::bit_floor(caps.max_workgroup_invocations));
  products.gemv_rows = std::bit_floor(std::min<uint32_t>(tuning.gemv_rows, 4));
  products.gemv_blocks = 2;
  if (!products
           .int_dot) {  // bytes are taken apart in registers, which a large tile has none left for
    products.gemm_rows = 2;
    products.gemm_columns = 4;
  }
  switch (caps.kind) {
    case DeviceKind::kDiscrete:  // much must be under way: all lanes there are, whatever the rows
      products.gemv_lanes = 32;
      products.gemv_fill = 32768;
      break;
    case DeviceKind::kCpu:  // lanes are a loop here, and pipelines are compiled for long
      products.gemv_fill = 0;
      products.gemv_blocks = 1;
      products.gemm_rows = 2;
      products.gemm_columns = 4;
      break;
    case DeviceKind::kIntegrated:
    case DeviceKind::kOther:
      break;
  }
  return products;
}

}  // namespace trine::vulkan
