// Chooses the kernel of a product with many columns. No result depends on it.
#pragma once

#include <cstdint>

#include "kernels/hip/gemm/gemm_kernels.h"
#include "kernels/hip/weights/product.h"

namespace trine::hip {

// Returns the kernel that is expected to compute the product fastest.
TiledGemm ChooseGemm(const Product& product, const DeviceShape& shape);

// Returns the tiles along the columns of a product; with experts, the most that there can be.
int64_t ColumnTiles(const Product& product, const TileShape& tile);

}  // namespace trine::hip
