#include "kernels/cpu/product/chunk_tile.h"

#include <cstdint>

#include "kernels/cpu/product/finish.h"
#include "kernels/cpu/product/paired_columns.h"
#include "kernels/cpu/product/tile_terms.h"
#include "kernels/cpu/product/unpack.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// The number of columns that share the loads of a tile's weights; registers limit it.
constexpr int kGroupColumns = kNativeLanes == 16 ? 8 : 4;

constexpr FormatTraits WithoutOffset(FormatTraits traits) {
  traits.offset = 0;
  return traits;
}

// The start values of the integer sums of a column's blocks.
template <int kHalves>
struct TileStarts {
  int32_t value[kHalves][kTileChunks][kTileClasses];

  TRINE_INLINE void Set(const ActivationChunk* x, int64_t step, int count, int offset,
                        TileStarts* starts) {
    for (int t = 0; t < count; ++t) {
      for (int h = 0; h < kHalves; ++h) {
        const ActivationChunk& chunk = x[t * step];
        const int32_t* sums = kHalves == 2 ? chunk.half_sum[h] : chunk.sum;
        Store(Splat<8>(kSumBits) - Splat<8>(offset) * Load<8>(sums), starts->value[h][t]);
      }
    }
  }
};

// Returns the number of cells of rows whose sums are in registers at a time. Two slices keep the
// multipliers busy; with one, they wait for its sums. AArch64 has enough registers for two, in
// formats that need few.
constexpr int StepsAtOnce(FormatTraits traits) {
#if defined(__aarch64__)
  const bool few = traits.scales == Scales::kNone && traits.minimums == Minimums::kNone;
  return (few ? kSlices : 1) * kCellColumns;
#else
  (void)traits;
  return 1;
#endif
}

// Columns that are multiplied together.
struct ColumnGroup {
  const ActivationChunk* const* x;  // each column's chunks, without the values
  int64_t step;
  const ActivationChunk* const* q;  // chunks with the values; in pairs if kPairs
  int64_t q_step;
};

// Values by cell of columns and cell of rows.
template <typename T, int kColumns, int kSteps>
using GroupOf = T[kColumns][kSteps];

// Multiplies half h of a block of the tile, in the lanes that begin at `lane`, with half h of the
// columns' blocks.
template <bool kSigned, int kColumns, int kSteps>
TRINE_INLINE void DotHalves(const BlockBytes& q, int lane, int h, const int8_t* const* a,
                            GroupOf<SliceInts, kColumns, kSteps>& dots) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
  TRINE_UNROLL
  for (int eight = 0; eight < 2; ++eight) {
    SliceBytes w[kSteps];
    TRINE_UNROLL
    for (int s = 0; s < kSteps; ++s) {
      const int row = lane / kCellColumns + s * kCellRows, slice = row / kSliceRows * kSliceRows;
      w[s] = Load<4 * kSliceRows>(&q[4 * h + 2 * eight + row % kSliceRows / kCellRows][4 * slice]);
    }
    TRINE_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      for (int s = 0; s < kSteps; ++s) DotPairs(w[s], a[c] + 16 * (2 * h + eight), &dots[c][s]);
    }
  }
#else
  SliceBytes w[kSteps][4];
  for (int s = 0; s < kSteps; ++s) {
    for (int i = 0; i < 4; ++i) {
      w[s][i] = Load<4 * kSliceRows>(&q[4 * h + i][4 * (lane + s * kSliceRows)]);
    }
  }
  for (int c = 0; c < kColumns; ++c) {
    for (int s = 0; s < kSteps; ++s) Dot16<kSigned>(w[s], a[c] + 16 * h, &dots[c][s]);
  }
#endif
}

// Returns block (j, t) of cell c of a group's columns.
TRINE_INLINE const int8_t* BlockOf(const ColumnGroup& group, int c, int j, int t) {
  const auto q = [&](int column) { return group.q[column][t * group.q_step].q; };
  if constexpr (kPairs) return BlockOfPair(q(2 * c), q(2 * c + 1), j);
  return q(c) + quant::kGroupValues * j;
}

// Computes I of docs/numerics.md, of block (j, t) for each cell.
template <FormatTraits kTraits, int kColumns, int kSteps>
TRINE_INLINE void TileDots(const ChunkTile& tile, int j, int t, int lane, const auto* starts,
                           const ColumnGroup& group,
                           GroupOf<SliceFloats, kColumns, kSteps>& scaled) {
  constexpr bool kSigned = kTraits.is_signed;
  GroupOf<SliceInts, kColumns, kSteps> dots;
  const auto start = [&](int h) {
    for (int c = 0; c < kColumns; ++c) {
      for (int s = 0; s < kSteps; ++s) {
        dots[c][s] = Splat<kSliceRows>(
            kDotBytes == TileBytesAre::kWeights ? kSumBits : starts[c].value[h][t][j]);
      }
    }
  };
  const auto scale = [&](int h, int s) {
    return Load<kSliceRows>(&tile.scale[h][j][t][lane + s * kSliceRows]);
  };
  const auto& q = *reinterpret_cast<const BlockBytes*>(tile.bytes[t] + j * tile.class_step);
  const int8_t* a[kColumns];
  for (int c = 0; c < kColumns; ++c) a[c] = BlockOf(group, c, j, t);
  start(0);
  DotHalves<kSigned, kColumns, kSteps>(q, lane, 0, a, dots);
  if constexpr (kTraits.scales == Scales::kHalf) {
    for (int s = 0; s < kSteps; ++s) {
      const SliceFloats first = scale(0, s);
      for (int c = 0; c < kColumns; ++c) scaled[c][s] = SumsToFloats(dots[c][s]) * first;
    }
    start(1);
    DotHalves<kSigned, kColumns, kSteps>(q, lane, 1, a, dots);
    for (int s = 0; s < kSteps; ++s) {
      const SliceFloats last = scale(1, s);
      for (int c = 0; c < kColumns; ++c) scaled[c][s] += SumsToFloats(dots[c][s]) * last;
    }
  } else {
    DotHalves<kSigned, kColumns, kSteps>(q, lane, 1, a, dots);
    for (int s = 0; s < kSteps; ++s) {
      for (int c = 0; c < kColumns; ++c) {
        scaled[c][s] = SumsToFloats(dots[c][s]);
        if constexpr (kTraits.scales == Scales::kBlock) scaled[c][s] = scaled[c][s] * scale(0, s);
      }
    }
  }
}

// Adds the terms of block (j, t) to the cells' sums; kFirst: sets the sums to the terms.
template <FormatTraits kTraits, int kColumns, int kSteps, bool kFirst, int kColumn = 0>
TRINE_INLINE void AddTileTerms(const ChunkTile& tile, int j, int t, int lane, const auto& block,
                               const GroupOf<SliceFloats, kColumns, kSteps>& scaled,
                               GroupOf<SliceFloats, kColumns, kSteps>& acc) {
  if constexpr (kColumn < kColumns) {
    const ColumnFactors x = GroupFactors<kTraits, kColumns>::template Of<kColumn>(block);
    for (int s = 0; s < kSteps; ++s) {
      const SliceFloats terms =
          TileTerms<kTraits>(tile, j, t, lane + s * kSliceRows, x, scaled[kColumn][s]);
      acc[kColumn][s] = kFirst ? terms : acc[kColumn][s] + terms;
    }
    AddTileTerms<kTraits, kColumns, kSteps, kFirst, kColumn + 1>(tile, j, t, lane, block, scaled,
                                                                 acc);
  }
}

// A step of the sum over classes ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). Adds the sums of
// classes j = `first` and j + 4, then adds `count` earlier results, which lie in the places of
// classes with[0] and with[1]. Puts the result in the place of class `to`.
struct Joins {
  int first;  // j
  int count, with[2];
  int to;
};
constexpr Joins kJoins[kTileClasses / 2] = {
    {0, 0, {}, 0}, {2, 1, {0}, 0}, {1, 0, {}, 1}, {3, 2, {1, 0}, 0}};

// Multiplies a tile with kColumns cells of columns.
template <FormatTraits kTraits, int kColumns>
TRINE_FEW_SPILLS void MultiplyGroup(const ChunkTile& tile, const TilePass& pass, int offset,
                                    const ColumnGroup& group, TileSums* sums) {
  constexpr int kHalves = kTraits.scales == Scales::kHalf ? 2 : 1;
  constexpr int kSteps = StepsAtOnce(kTraits);
  const int chunks = BlocksOfClass(pass.blocks, 0);
  TileStarts<kHalves> starts[kColumns];
  if constexpr (kDotBytes == TileBytesAre::kStored) {
    for (int c = 0; c < kColumns; ++c) {
      TileStarts<kHalves>::Set(group.x[c], group.step, chunks, offset, &starts[c]);
    }
  }
  using Factors = GroupFactors<kTraits, kColumns>;
  Factors factors;
  Factors::Set(group.x, group.step, chunks, &factors);
  for (const Joins& joins : kJoins) {
    for (int lane = 0; lane < kTileLanes; lane += kSteps * kSliceRows) {
      using Cells = GroupOf<SliceFloats, kColumns, kSteps>;
      const auto each = [&](Cells & cells, auto act) __attribute__((always_inline)) {
        for (int c = 0; c < kColumns; ++c) {
          for (int s = 0; s < kSteps; ++s) act(sums[c].s, lane + s * kSliceRows, cells[c][s]);
        }
      };
      // Computes the sums of class j so far.
      const auto sum = [&](int j, Cells& acc) __attribute__((always_inline)) {
        const auto add = [&]<bool kFirst>(int t) __attribute__((always_inline)) {
          Cells scaled;
          TileDots<kTraits, kColumns, kSteps>(tile, j, t, lane, starts, group, scaled);
          AddTileTerms<kTraits, kColumns, kSteps, kFirst>(tile, j, t, lane,
                                                          Factors::At(factors, j, t), scaled, acc);
        };
        const int count = BlocksOfClass(pass.blocks, j);
        // A sum that begins with a term instead of 0 differs at most in the sign of a zero, which
        // canon removes.
        int t = 0;
        if (!pass.first) {
          each(acc, [j](auto& s, int at, SliceFloats& to) { to = Load<kSliceRows>(&s[j][at]); });
        } else if (count == 0) {
          each(acc, [](auto&, int, SliceFloats& to) { to = Splat<kSliceRows>(0.0f); });
        } else {
          add.template operator()<true>(t++);
        }
        for (; t < count; ++t) add.template operator()<false>(t);
      };
      const auto store = [&](Cells & acc, int j) __attribute__((always_inline)) {
        each(acc, [j](auto& s, int at, SliceFloats& from) { Store(from, &s[j][at]); });
      };
      Cells acc, other;
      sum(joins.first, acc);
      if (!pass.last) store(acc, joins.first);
      sum(joins.first + kTileClasses / 2, other);
      if (!pass.last) {
        store(other, joins.first + kTileClasses / 2);
        continue;
      }
      for (int c = 0; c < kColumns; ++c) {
        for (int s = 0; s < kSteps; ++s) acc[c][s] += other[c][s];
      }
      for (int i = 0; i < joins.count; ++i) {
        const int j = joins.with[i];
        each(acc, [j](auto& s, int at, SliceFloats& to) { to += Load<kSliceRows>(&s[j][at]); });
      }
      store(acc, joins.to);
    }
  }
}

// Multiplies a tile with some columns of a product.
template <FormatTraits kTraits>
class ColumnsOfTile {
 public:
  TRINE_INLINE void Multiply(const ChunkTile& tile, const TilePass& pass, int offset,
                             const Columns& columns, TileSums* sums) {
    const ActivationChunk* x[kMaxColumns + 1];
    for (int c = 0; c < columns.count; ++c) {
      x[c] = columns.chunks[c] + pass.first_chunk * columns.step;
    }
    x[columns.count] = x[columns.count - 1];  // a last column without a partner gets itself
    const auto of = [&]<int kCells>(int c) __attribute__((always_inline)) {
      const bool in_place = !kPairs || (columns.paired && c + 2 * kCells <= columns.count);
      const ColumnGroup group = {x + c, columns.step, x + c, columns.step};
      TileSums* const to = sums + c / kCellColumns;
      if (in_place) return MultiplyGroup<kTraits, kCells>(tile, pass, offset, group, to);
      if constexpr (kPairs) MultiplyApart<kCells>(tile, pass, columns, c, group, to);
    };
    int c = 0;
    for (; c + kGroupColumns <= columns.count; c += kGroupColumns) {
      of.template operator()<kGroupColumns / kCellColumns>(c);
    }
    if constexpr (kGroupColumns > 4) {
      if (c + 4 <= columns.count) {
        of.template operator()<4>(c);
        c += 4;
      }
    }
    if (c + 2 <= columns.count) {
      of.template operator()<2 / kCellColumns>(c);
      c += 2;
    }
    if (c < columns.count) of.template operator()<1>(c);
  }

 private:
  // Multiplies columns that do not lie in pairs yet.
  template <int kCells>
  [[gnu::noinline]] static void MultiplyApart(const ChunkTile& tile, const TilePass& pass,
                                              const Columns& columns, int c, ColumnGroup group,
                                              TileSums* sums) {
    ActivationChunk room[2 * kCells][kTileChunks];
    const ActivationChunk* q[2 * kCells];
    const int chunks = BlocksOfClass(pass.blocks, 0);
    for (int i = 0; i < 2 * kCells; i += 2) {
      const bool lies_so = columns.paired && c + i + 1 < columns.count;
      for (int t = 0; t < chunks; ++t) {
        ActivationChunk *first = &room[i][t], *second = &room[i + 1][t];
        for (int which = 0; which < 2; ++which) {
          const ActivationChunk& from = group.x[i + which][t * group.step];
          if (lies_so) {
            __builtin_memcpy(room[i + which][t].q, from.q, sizeof(from.q));
          } else {
            StoreToPair(from.q, which, first->q, second->q);
          }
        }
      }
      q[i] = room[i];
      q[i + 1] = room[i + 1];
    }
    group.q = q;
    group.q_step = 1;
    MultiplyGroup<kTraits, kCells>(tile, pass, 0, group, sums);
  }
};

}  // namespace

// Passes a format's offset as a number, so that formats that differ only in it share the code.
void MultiplyTile(const ChunkTile& tile, FormatTraits traits, const TilePass& pass,
                  const Columns& columns, TileSums* sums) {
  const int offset = kDotBytes == TileBytesAre::kWeights ? 0 : OffsetOf(traits);
  const auto as = [&]<Type kType>() {
    ColumnsOfTile<WithoutOffset(Format<kType>::kTraits)>::Multiply(tile, pass, offset, columns,
                                                                   sums);
  };
  switch (traits.scales) {
    case Scales::kNone:
      if (traits.minimums != Minimums::kNone) return as.operator()<Type::kQ4_1>();
      return traits.is_signed ? as.operator()<Type::kQ8_0>() : as.operator()<Type::kQ4_0>();
    case Scales::kBlock:
      if (traits.minimums != Minimums::kNone) return as.operator()<Type::kQ4_K>();
      return as.operator()<Type::kIQ4_XS>();
    case Scales::kHalf:
      if (traits.minimums != Minimums::kNone) return as.operator()<Type::kQ2_K>();
      return as.operator()<Type::kQ6_K>();
  }
}

void FinishTile(const TileSums* sums, const WeightRows& weights, int64_t first, Range wanted,
                const Columns& columns) {
  for (int c = 0; c < columns.count; c += kCellColumns) {
    const float* s = sums[c / kCellColumns].s[0];
    const auto finish = [&](int column, TileFloats dots) {
      FinishRows(dots, weights.bias, first, wanted, columns.y[column]);
    };
#if defined(__ARM_FEATURE_MATMUL_INT8)
    // Two rows to a register.
    const float32x4_t r0 = vld1q_f32(s), r2 = vld1q_f32(s + 4), r4 = vld1q_f32(s + 8),
                      r6 = vld1q_f32(s + 12);
    finish(c, {{vuzp1q_f32(r0, r2)}, {vuzp1q_f32(r4, r6)}});
    if (c + 1 < columns.count) finish(c + 1, {{vuzp2q_f32(r0, r2)}, {vuzp2q_f32(r4, r6)}});
#else
    finish(c, Load<kTileRows>(s));
#endif
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
