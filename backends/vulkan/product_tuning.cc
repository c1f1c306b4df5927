#include "backends/vulkan/product_tuning.h"

#include <algorithm>
#include <bit>

namespace trine::vulkan {

namespace {

// Tiles and workgroups that fit the device's shared memory. The smallest ones take less than the
// 16 KiB that every device has; where there are not even those, ops are refused one by one.
void FitSharedMemory(const DeviceCaps& caps, ProductTuning* products) {
  ProductTuning& p = *products;
  while (GemmSharedBytes(p) > caps.max_shared_bytes && p.gemm_rows * p.gemm_columns > 1) {
    (p.gemm_columns > p.gemm_rows ? p.gemm_columns : p.gemm_rows) /= 2;
  }
  while (GemvSharedBytes(p) > caps.max_shared_bytes &&
         (p.gemv_blocks > 1 || p.gemv_workgroup > 32)) {
    p.gemv_blocks > 1 ? p.gemv_blocks = 1 : p.gemv_workgroup /= 2;
  }
}

// Workgroups are whole subgroups where a size is required.
uint32_t RequiredSubgroup(const DeviceCaps& caps, uint32_t size, uint32_t workgroup) {
  const bool whole = size != 0 && workgroup % size == 0;
  return whole && workgroup / size <= caps.max_workgroup_subgroups ? size : 0;
}

}  // namespace

ProductTuning ChooseProductTuning(const DeviceCaps& caps, const Tuning& tuning) {
  ProductTuning products;
  products.int_dot = tuning.int_dot;
  // Two rows of floats to a workgroup, or eight of blocks, are few enough to end early.
  products.gemv_workgroup =
      std::clamp<uint32_t>(std::max(std::bit_floor(tuning.gemv_workgroup), tuning.subgroup_size),
                           64, std::bit_floor(caps.max_workgroup_invocations));
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
  FitSharedMemory(caps, &products);
  products.gemv_subgroup = RequiredSubgroup(caps, tuning.subgroup_size, products.gemv_workgroup);
  return products;
}

}  // namespace trine::vulkan
