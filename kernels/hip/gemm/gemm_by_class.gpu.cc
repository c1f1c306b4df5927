// Instantiates the kernels that take packed weights class by class.
#include "kernels/hip/gemm/gemm_by_class.h"

#include "kernels/hip/gemm/gemm_kernels.h"
#include "kernels/quant/packed_rows.h"

namespace trine::hip {

#if defined(TRINE_HAS_MMA)
namespace {

template <class Form, class Tile>
TiledGemm KernelOf() {
  TiledGemm found;
  found.kernel = &GemmByClass<Form, Tile>;
  found.tile = {Tile::kRows, Tile::kColumns, Tile::kThreads};
  found.shared_bytes = sizeof(ClassMemory<Form, Tile>);
  found.resident = 512 / Tile::kThreads;
  return found;
}

}  // namespace

TiledGemms ByClassGemm(quant::Type type) {
  return quant::PackedBlockTypes::Call(type, [&]<quant::Type kType>() {
    using Form = PackedForm<kType>;
    return TiledGemms{KernelOf<Form, ClassTile<4, 1>>(), KernelOf<Form, ClassTile<4, 2>>(),
                      KernelOf<Form, ClassTile<4, 4>>()};
  });
}
#else
TiledGemms ByClassGemm(quant::Type) { return {}; }
#endif

}  // namespace trine::hip
