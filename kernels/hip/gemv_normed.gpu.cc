// Products of a norm that each block makes for itself (column_norm.h).
#include "kernels/hip/gemv_parts.h"
#include "kernels/hip/gemv_quantized.h"

namespace trine::hip {
namespace {

// Fewer blocks than other products have, since each makes the norm.
constexpr uint32_t kThreads = 256;
constexpr uint32_t kSlots = kThreads / kLanes;

template <class W, int kRows>
TRINE_KERNEL(kThreads)
NormedGemvKernel(GemvArgs args) {
  TRINE_DYNAMIC_SHARED(float, memory);
  using Sums = ClassSums<kRows>;
  const auto lane = static_cast<int>(ThreadX() % kLanes);
  const GemvPart part = PartOf(args);
  const uint32_t row = ((BlockX() - part.first_block) * kSlots + ThreadX() / kLanes) * kRows;
  LetNextStart();
  if (!args.constant) AwaitEarlier();
  // Of rows behind the end the last one: all threads make the norm.
  const std::byte* rows[kRows];
  TRINE_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const uint32_t at = row + static_cast<uint32_t>(r);
    rows[r] = part.weights + (at < part.n ? at : part.n - 1) * part.row_stride;
  }
  const ColumnNormBlock<kThreads> norm(args.norm, args.k, memory);
  const Sums sums = QuantizedDots<W, 1, kRows, 2>(args, rows, 0, 1, lane, [&] {
    norm.Make();
    return norm.Columns();
  });
  TRINE_UNROLL
  for (int i = 0; i < kRows; ++i) {
    const uint32_t r = row + static_cast<uint32_t>(i);
    if (Sums::IsAt(i, lane) && r < part.n) {
      Store(args, part, {part.weights, part.bias, false}, r, 0, sums.Of(i));
    }
  }
}

template <class W, int kRows>
Launch NormedGemvOf(GemvArgs args) {
  const Dim grid = GemvGrid(kRows, 1, &args, kSlots);
  return MakeLaunch(NormedGemvKernel<W, kRows>, grid, {kThreads}, args, ColumnNormBytes(args.k));
}

template <Type kType>
Launch NormedGemvFor(const GemvArgs& args) {
  using W = Weights<kType, Layout::kPacked>;
  return args.many_rows ? NormedGemvOf<W, 2>(args) : NormedGemvOf<W, 1>(args);
}

}  // namespace

Launch NormedGemv(Type type, const GemvArgs& args) {
  switch (type) {
    case Type::kQ8_0:
      return NormedGemvFor<Type::kQ8_0>(args);
    case Type::kQ4_0:
      return NormedGemvFor<Type::kQ4_0>(args);
    case Type::kQ4_K:
      return NormedGemvFor<Type::kQ4_K>(args);
    case Type::kQ5_K:
      return NormedGemvFor<Type::kQ5_K>(args);
    case Type::kQ6_K:
      return NormedGemvFor<Type::kQ6_K>(args);
    default:
      return {};
  }
}

}  // namespace trine::hip
