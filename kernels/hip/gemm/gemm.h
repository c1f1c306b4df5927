// Makes the launches of products with many columns. Each block of threads computes a tile of the
// result.
//
// Which kernel computes a product, and the size of its tiles, depends on how many tiles there are
// for the device (gemm_choice.h). No result depends on it.
//
// The columns of each expert are collected first, by a launch that writes lists to scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/hip/gemm/gemm_kernels.h"
#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/weights/product.h"

namespace trine::hip {

// Returns "" if AddGemm takes the product, else why not.
std::string WhyNotGemm(const Product& product);

// Returns the bytes of scratch memory that AddGemm needs. The memory must begin at a multiple
// of 16.
uint64_t GemmScratchBytes(const Product& product);

// Appends the launches of a product. Quantised weights need product.q.
void AddGemm(const Product& product, const DeviceShape& shape, std::byte* scratch,
             std::vector<Launch>* launches);

// Does what AddGemm does, with this kernel. For tests and benches.
void AddGemmBy(const TiledGemm& kernel, const Product& product, std::byte* scratch,
               std::vector<Launch>* launches);

}  // namespace trine::hip
