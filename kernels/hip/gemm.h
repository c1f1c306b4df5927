// Products with many columns: tiles of the result, each made by a block of threads.
//
// Quantised weights have two sizes of tiles: large ones where they fill the device, small ones for
// few columns. No result depends on it.
//
// Columns of experts are put together first, by a launch that writes lists to scratch memory.
#ifndef TRINE_KERNELS_HIP_GEMM_H_
#define TRINE_KERNELS_HIP_GEMM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/product.h"

namespace trine::hip {

// "" or why AddGemm does not take the product.
std::string WhyNotGemm(const Product& product);

// Of scratch memory that AddGemm needs, from an address that is a multiple of 16 on.
uint64_t GemmScratchBytes(const Product& product, const DeviceShape& shape);

// Quantised weights need product.q.
void AddGemm(const Product& product, const DeviceShape& shape, std::byte* scratch,
             std::vector<Launch>* launches);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GEMM_H_
