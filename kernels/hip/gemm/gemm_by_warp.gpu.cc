// Instantiates the kernels whose warps have a class each.
#include "kernels/hip/gemm/gemm_by_warp.h"

#include "kernels/hip/gemm/gemm_kernels.h"
#include "kernels/quant/packed_rows.h"

namespace trine::hip {

#if defined(TRINE_HAS_MMA)
namespace {

template <class Tile>
TiledGemm KernelOf() {
  TiledGemm found;
  found.kernel = &GemmByWarp<Tile>;
  found.tile = {Tile::kRows, Tile::kColumns, Tile::kThreads};
  found.shared_bytes = sizeof(typename Tile::Memory);
  found.resident = Tile::kColumns <= 32 ? 2 : 1;
  return found;
}

}  // namespace

TiledGemms ByWarpGemm(quant::Type type) {
  return quant::PackedBlockTypes::Call(type, [&]<quant::Type kType>() {
    using Form = PackedForm<kType>;
    return TiledGemms{KernelOf<WarpTile<Form, 16>>(), KernelOf<WarpTile<Form, 32>>(),
                      KernelOf<WarpTile<Form, 64>>()};
  });
}
#else
TiledGemms ByWarpGemm(quant::Type) { return {}; }
#endif

}  // namespace trine::hip
