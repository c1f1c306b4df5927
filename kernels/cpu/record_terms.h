// The float part of products of records: one term per row, column and block.

#ifndef TRINE_KERNELS_CPU_RECORD_TERMS_H_
#define TRINE_KERNELS_CPU_RECORD_TERMS_H_

#include "kernels/cpu/activation_records.h"
#include "kernels/cpu/tile_instructions.h"
#include "kernels/cpu/vec.h"
#include "kernels/cpu/weight_records.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// What the weights bring to the terms of a block, by row: a record's floats. Registers, for as long
// as it takes.
template <FormatTraits kTraits>
using RowFactors = TileFloats[WeightRecord<kTraits>::kFloats];

template <FormatTraits kTraits>
TRINE_INLINE void LoadFactors(const WeightRecord<kTraits>& record, RowFactors<kTraits>& w) {
#pragma GCC unroll 8
  for (int i = 0; i < WeightRecord<kTraits>::kFloats; ++i) w[i] = Load<kTileRows>(record.floats[i]);
}

// I of docs/numerics.md, as a float, of column c. `products`: those of the block, or of its halves.
template <FormatTraits kTraits>
TRINE_INLINE TileFloats ScaledProducts(const TileProducts* products, const RowFactors<kTraits>& w,
                                       int c) {
  using R = WeightRecord<kTraits>;
  const TileFloats first = Convert<float>(Load<kTileRows>(products[0][c]));
  if constexpr (kTraits.scales == Scales::kNone) {
    return first;
  } else if constexpr (kTraits.scales == Scales::kBlock) {
    return first * w[R::kScale];
  } else {
    const TileFloats last = Convert<float>(Load<kTileRows>(products[1][c]));
    return first * w[R::kScale] + last * w[R::kScale + 1];
  }
}

// M of docs/numerics.md, likewise.
template <FormatTraits kTraits>
TRINE_INLINE TileFloats ScaledMinimums(const ActivationSums& sums, const RowFactors<kTraits>& w,
                                       int c) {
  using R = WeightRecord<kTraits>;
  const auto splat = [](float x) { return Splat<kTileRows>(x); };
  if constexpr (kTraits.minimums == Minimums::kHalf) {
    return w[R::kMin] * splat(sums.half_sum[0][c]) + w[R::kMin + 1] * splat(sums.half_sum[1][c]);
  } else {
    return w[R::kMin] * splat(sums.sum[c]);
  }
}

// The terms of column c. `sums` is looked at by formats with minimums alone.
template <FormatTraits kTraits>
TRINE_INLINE TileFloats RecordTerms(const TileProducts* products, const RowFactors<kTraits>& w,
                                    const ActivationRecord& a, const ActivationSums* sums, int c) {
  using R = WeightRecord<kTraits>;
  const TileFloats d = Splat<kTileRows>(a.d[c]);
  const TileFloats terms = (w[R::kD] * d) * ScaledProducts<kTraits>(products, w, c);
  if constexpr (kTraits.minimums == Minimums::kNone) {
    return terms;
  } else if constexpr (kTraits.minimums == Minimums::kAdded) {  // M is the sum, negated
    return terms + (w[R::kDmin] * d) * Splat<kTileRows>(sums->sum[c]);
  } else {
    return terms - (w[R::kDmin] * d) * ScaledMinimums<kTraits>(*sums, w, c);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_RECORD_TERMS_H_
