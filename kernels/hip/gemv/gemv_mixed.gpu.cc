// Multiplies packed weights of several types with one column of x, in one launch: models have other
// types for some of the products of an x.
#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/gemv/gemv_quantized.h"

namespace trine::hip {
namespace {

// Calls act.operator()<type>(). All threads of a block have the same type.
template <Type... kTypes, class Act>
TRINE_DEVICE void CallOne(quant::TypeList<kTypes...>, Type type, const Act& act) {
  (void)((type == kTypes && (act.template operator()<kTypes>(), true)) || ...);
}

template <int kRows>
TRINE_KERNEL(kGemvThreads)
MixedGemvKernel(GemvArgs args) {
  const auto lane = static_cast<int>(ThreadX() % kLanes);
  const GemvPart part = PartOf(args);
  const uint32_t index = PartIndexOf(args);
  const Type type =
      PickArgument<kMaxGemvProducts>(index, [&](uint32_t i) { return args.types[i]; });
  const uint32_t block = BlockX() - part.first_block;
  const uint32_t row = (block * kGemvSlots + ThreadX() / kLanes) * kRows;
  LetNextStart();
  if (!args.constant) AwaitEarlier();
  if (row >= part.n) return;  // the same for all lanes of the group
  CallOne(quant::PackedBlockTypes(), type, [&]<Type kType>() {
    QuantizedRows<Weights<kType, Layout::kPacked>, 1, kRows, 2>(args, part, row, lane);
  });
}

template <int kRows>
Launch MixedGemvOf(GemvArgs args) {
  const Dim grid = GemvGrid(kRows, 1, &args);
  return MakeLaunch(MixedGemvKernel<kRows>, grid, {kGemvThreads}, args);
}

}  // namespace

Launch MixedGemv(const GemvArgs& args) {
  return args.many_rows ? MixedGemvOf<2>(args) : MixedGemvOf<1>(args);
}

}  // namespace trine::hip
