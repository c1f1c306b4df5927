// Makes the launches of products with many columns. Each block of threads computes a tile of the
// result.
//
// Quantised weights have two sizes of tiles: large tiles if they fill the device, small tiles for
// few columns. No result depends on the size.
//
// The columns of each expert are collected first, by a launch that writes lists to scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/weights/product.h"

namespace trine::hip {

// Returns "" if AddGemm takes the product, else why not.
std::string WhyNotGemm(const Product& product);

// Returns the bytes of scratch memory that AddGemm needs. The memory must begin at a multiple
// of 16.
uint64_t GemmScratchBytes(const Product& product, const DeviceShape& shape);

// Appends the launches of a product. Quantised weights need product.q.
void AddGemm(const Product& product, const DeviceShape& shape, std::byte* scratch,
             std::vector<Launch>* launches);

}  // namespace trine::hip
