// Multiplies groups of packed weights with one column (decode), with instructions in an order that
// is chosen here (ordered.h). The results are those of packed_dot.h.

#pragma once

#include <cstdint>

#include "kernels/cpu/levels/activations.h"
#include "kernels/cpu/levels/packed.h"
#include "kernels/cpu/product/packed_format.h"
#include "kernels/cpu/simd/ordered.h"
#include "kernels/cpu/simd/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// --- The order

// The kinds of instructions. An index counts quads (0 to 7), vectors of weights, halves or scales.
enum class ColumnDo {
  // Loads
  kActivations,
  kWeights,
  kStart,
  kScaleBytes,
  kMinBytes,
  kSums,
  kD,
  kDmin,
  kActivationScales,
  // Weights, and their products with activations
  kUnpack,
  kLookUp,
  kJoin,
  kJoinMore,
  kMask,
  kDot,
  // The term of the products' sum
  kWidenScale,
  kWidenScaleMore,
  kScaleSum,
  kSumToFloats,
  kWidenD,
  kFactor,
  kTerm,
  // The term of the minimum
  kWidenMin,
  kMinProduct,
  kMinToFloats,
  kWidenDmin,
  kMinFactor,
  kMinTerm,
  kSubtractMin,
  // The sum of the class
  kAdd,
};
constexpr bool IsLoad(ColumnDo what) { return what <= ColumnDo::kActivationScales; }

// The distances of instructions from the instructions whose results they need. Of some dozens of
// choices these took the least time, or nearly so, for most types.
constexpr double kFromDotToDot = 3.5;
constexpr double kFromUnpackToDot = 2;
constexpr double kFromLoadToUse = 6;
constexpr double kFromDotToFloats = 16;
constexpr double kFromFloatsToTerm = 12;
constexpr double kFromTermToSum = 20;

// A block of the rows of a slice.
template <Type kType>
struct Unit {
  using Do = ColumnDo;
  using P = Packed<kType>;
  static constexpr PackedTraits kPlanes = P::kPlanes;
  // Triples need no offset: unpacking subtracts it, and makes values four times as large.
  static constexpr int kOffset = P::kInTriples ? 0 : OffsetOf(P::kTraits);
  static constexpr bool kInHalves = P::kTraits.scales == Scales::kHalf;
  static constexpr bool kHasTable = kPlanes.table != nullptr;
  // true: a chunk has one d, which the first unit of each slice loads.
  static constexpr bool kOneD =
      kPlanes.floats == Floats::kChunkF16 || kPlanes.floats == Floats::kChunkF16Pair;
  // Scales and minimums of Q4_K have no sign: a lookup widens them.
  static constexpr bool kUnsignedScales = P::kHasMins;
  // true: the type is multiplied in this order. Q5_0 and Q5_K were slower, IQ4_NL no faster.
  // Q4_1, Q5_1 and MXFP4 have not been tried.
  static constexpr bool kIsOrdered = kType == Type::kQ4_0 || kType == Type::kQ4_K ||
                                     kType == Type::kQ6_K || kType == Type::kIQ4_XS;

  // Returns the instructions of a unit that begins at time 0.
  static constexpr TimedList<Do> TimesOf(int block) {
    TimedList<Do> list;
    for (int q = 0; q < 8; ++q) {
      const double dot = kFromDotToDot * q;
      if (q % 4 == 0) {
        list.Add(Do::kActivations, q / 4, dot - kFromLoadToUse);
        if (q == 0 || kInHalves) list.Add(Do::kStart, q / 4, dot - 2);
      }
      list.Add(Do::kDot, q, dot);
      double unpacked = dot - kFromUnpackToDot;
      if (P::kInTriples) {
        if (q % 4 < 3) {
          list.Add(Do::kUnpack, q, unpacked);
          list.Add(Do::kWeights, q / 4 * 3 + q % 4, unpacked - kFromLoadToUse);
        } else {
          list.Add(Do::kMask, q, unpacked);
          list.Add(Do::kJoinMore, q, unpacked - kFromUnpackToDot);
          list.Add(Do::kJoin, q, unpacked - 2 * kFromUnpackToDot);
        }
        continue;
      }
      if (kHasTable) {
        list.Add(Do::kLookUp, q, unpacked);
        unpacked -= kFromUnpackToDot;
      }
      list.Add(Do::kUnpack, q, unpacked);
      if (q < 4) list.Add(Do::kWeights, q, unpacked - kFromLoadToUse);
    }
    const double sum = kFromDotToDot * 7 + kFromDotToFloats;
    for (int s = 0; s < P::kScales; ++s) {
      const double at = kInHalves && s == 0 ? sum - kFromDotToDot * 4 : sum;
      list.Add(Do::kScaleBytes, s, at - 8 - kFromLoadToUse);
      list.Add(Do::kWidenScale, s, at - 8);
      if (!kUnsignedScales) list.Add(Do::kWidenScaleMore, s, at - 4);
      list.Add(Do::kScaleSum, s, at);
    }
    const double floats = P::kScales == 0 ? sum : sum + 8;
    if (P::kHasMins) {
      list.Add(Do::kMinBytes, 0, sum - 12 - kFromLoadToUse);
      list.Add(Do::kWidenMin, 0, sum - 12);
      list.Add(Do::kSums, 0, sum - 4 - kFromLoadToUse);
      list.Add(Do::kMinProduct, 0, sum - 4);
      list.Add(Do::kMinToFloats, 0, sum + 4);
      list.Add(Do::kMinFactor, 0, sum + 4);
      list.Add(Do::kMinTerm, 0, sum + 14);
      list.Add(Do::kSubtractMin, 0, floats + kFromFloatsToTerm + 10);
    }
    if (!kOneD || block == 0) {
      list.Add(Do::kD, 0, sum - 16 - kFromLoadToUse);
      list.Add(Do::kWidenD, 0, sum - 16);
      if (P::kHasMins) list.Add(Do::kDmin, 0, sum - 16 - kFromLoadToUse);
      if (P::kHasMins) list.Add(Do::kWidenDmin, 0, sum - 16);
    }
    list.Add(Do::kActivationScales, 0, sum - 4 - kFromLoadToUse);
    list.Add(Do::kFactor, 0, sum - 4);
    list.Add(Do::kSumToFloats, 0, floats);
    list.Add(Do::kTerm, 0, floats + kFromFloatsToTerm);
    list.Add(Do::kAdd, 0, floats + kFromFloatsToTerm + kFromTermToSum);
    return list;
  }

  uint8x16_t bytes[6];  // as they lie in memory
  uint8x16_t w[8];
  int8x16_t a[2];
  int32x4_t dot[2];
  uint8x16_t scale_bytes[2], min_bytes;
  int16x8_t scale_words[2];
  int32x4_t scale[2], min, sums;
  float16x4_t d_halves, dmin_halves;
  float32x4_t d, dmin, activation_scales, factor, min_factor, floats, min_floats, term, min_term;
};

// --- A chunk

// A column of activations, with start values for the integer sums of its blocks. A start value
// subtracts the offset of an unsigned format. It is repeated for each row of a slice, so one load
// brings a whole vector.
template <Type kType>
struct OrderedColumn {
  static constexpr int kOffset = Unit<kType>::kOffset;
  static_assert(kOffset == 0 || !Unit<kType>::kInHalves);

  const ActivationChunk* x;
  int64_t step;  // the distance from a chunk of x to the next
  int32_t start[kOffset == 0 ? 1 : kMaxPackedValues / quant::kGroupValues][kSliceRows];

  TRINE_INLINE void Set(const ActivationChunk* x, int64_t step, int64_t chunks,
                        OrderedColumn* column) {
    column->x = x;
    column->step = step;
    if constexpr (kOffset != 0) {
      for (int64_t b = 0; b < chunks * quant::kSuperGroups; ++b) {
        const int32_t sum = x[b / quant::kSuperGroups * step].sum[b % quant::kSuperGroups];
        Store(Splat<kSliceRows>(-kOffset * sum), column->start[b]);
      }
    }
  }
};

struct OrderedConstants {
  uint8x16_t mask;   // of what is unpacked
  uint8x16_t table;  // of the values
  uint8x16_t widen;  // four bytes to four lanes
};

template <Type kType>
TRINE_INLINE OrderedConstants ConstantsOf() {
  static constexpr uint8_t kWiden[16] = {0, 16, 16, 16, 1, 16, 16, 16,
                                         2, 16, 16, 16, 3, 16, 16, 16};
  OrderedConstants constants;
  constants.mask = vdupq_n_u8(Packed<kType>::kInTriples ? 0xfc : 15);
  constants.table = vld1q_u8(Unit<kType>::kHasTable ? Unit<kType>::kPlanes.table : kWiden);
  constants.widen = vld1q_u8(kWiden);
  return constants;
}

// Sums by class and slice.
struct OrderedSums {
  float32x4_t of[quant::kSuperGroups][kSlices];
};

// A chunk of kBlocks blocks of a group by one column.
template <Type kType, int kBlocks>
struct OrderedChunk {
  using Do = ColumnDo;
  using U = Unit<kType>;
  using P = Packed<kType>;
  // The slices of a block follow each other.
  static constexpr int kUnits = kSlices * kBlocks;
  static constexpr auto kOrder =
      Order<Do, kUnits>::Of([](int unit) { return U::TimesOf(unit / kSlices); });
  // Returns whether each instruction comes after the instructions whose results it needs.
  static constexpr bool IsInOrder() {
    using Flags = bool[kUnits][static_cast<int>(Do::kAdd) + 1][8];  // by unit, kind and index
    Flags expected = {}, done = {};
    for (int i = 0; i < kOrder.count; ++i) {
      const auto& entry = kOrder.entries[i];
      expected[entry.unit][static_cast<int>(entry.what)][entry.index] = true;
    }
    bool right = true;
    for (int i = 0; i < kOrder.count; ++i) {
      const auto& entry = kOrder.entries[i];
      const int n = entry.index, slice = entry.unit % kSlices;
      const auto needs = [&](Do what, int index, int unit) {
        const int w = static_cast<int>(what);
        if (expected[unit][w][index] && !done[unit][w][index]) right = false;
      };
      const auto own = [&](Do what, int index = 0) { needs(what, index, entry.unit); };
      const auto dots = [&](int from, int to) {
        for (int q = from; q < to; ++q) own(Do::kDot, q);
      };
      const int first_of_chunk = U::kOneD ? slice : entry.unit;
      switch (entry.what) {
        case Do::kUnpack:
          own(Do::kWeights, P::kInTriples ? n / 4 * 3 + n % 4 : n % 4);
          break;
        case Do::kLookUp:
          own(Do::kUnpack, n);
          break;
        case Do::kJoin:
          own(Do::kWeights, n / 4 * 3), own(Do::kWeights, n / 4 * 3 + 1);
          break;
        case Do::kJoinMore:
          own(Do::kJoin, n), own(Do::kWeights, n / 4 * 3 + 2);
          break;
        case Do::kMask:
          own(Do::kJoinMore, n);
          break;
        case Do::kDot:
          own(Do::kUnpack, n), own(Do::kLookUp, n), own(Do::kMask, n);
          own(Do::kStart, U::kInHalves ? n / 4 : 0);
          needs(Do::kActivations, n / 4, entry.unit - slice);
          break;
        case Do::kWidenScale:
          own(Do::kScaleBytes, n);
          break;
        case Do::kWidenScaleMore:
          own(Do::kWidenScale, n);
          break;
        case Do::kScaleSum:
          own(Do::kWidenScale, n), own(Do::kWidenScaleMore, n);
          dots(U::kInHalves ? 4 * n : 0, U::kInHalves ? 4 * n + 4 : 8);
          if (n == 1) own(Do::kScaleSum, 0);
          break;
        case Do::kSumToFloats:
          own(Do::kScaleSum, 0), own(Do::kScaleSum, 1), dots(0, 8);
          break;
        case Do::kWidenD:
          own(Do::kD);
          break;
        case Do::kWidenDmin:
          own(Do::kDmin);
          break;
        case Do::kFactor:
          needs(Do::kWidenD, 0, first_of_chunk), own(Do::kActivationScales);
          break;
        case Do::kTerm:
          own(Do::kFactor), own(Do::kSumToFloats);
          break;
        case Do::kWidenMin:
          own(Do::kMinBytes);
          break;
        case Do::kMinProduct:
          own(Do::kWidenMin), own(Do::kSums);
          break;
        case Do::kMinToFloats:
          own(Do::kMinProduct);
          break;
        case Do::kMinFactor:
          needs(Do::kWidenDmin, 0, first_of_chunk), own(Do::kActivationScales);
          break;
        case Do::kMinTerm:
          own(Do::kMinFactor), own(Do::kMinToFloats);
          break;
        case Do::kSubtractMin:
          own(Do::kTerm), own(Do::kMinTerm);
          break;
        case Do::kAdd:
          own(Do::kTerm), own(Do::kSubtractMin);
          break;
        default:  // loads
          break;
      }
      done[entry.unit][static_cast<int>(entry.what)][n] = true;
    }
    return right;
  }

  const uint8_t* chunk;
  const ActivationChunk* x;
  const int32_t (*start)[kSliceRows];
  OrderedConstants constants;
  OrderedSums sums;
  U units[kUnits];

  template <Do kWhat, int kIndex, int kUnit>
  [[gnu::always_inline]] void Run() {
    constexpr int j = kUnit / kSlices, kSlice = kUnit % kSlices, kRow = kSlice * kSliceRows;
    constexpr int kLane = j % 4;
    U& u = units[kUnit];
    U& of_block = units[kUnit - kSlice];         // the unit that has loaded the activations
    U& of_chunk = U::kOneD ? units[kSlice] : u;  // the unit that has loaded d
    const uint8_t* weights = chunk + P::HeaderBytes(kBlocks) + j * P::kBlockBytes + 4 * kRow;
    const uint8_t* halves = chunk + 2 * ((U::kOneD ? 0 : j * kTileRows) + kRow);
    const uint8_t* scales = chunk + P::FloatBytes(kBlocks) + kRow;
    if constexpr (kWhat == Do::kActivations) {
      if constexpr (kSlice == 0) {
        u.a[kIndex] = LoadSixteen<int8x16_t>(x->q + quant::kGroupValues * j + 16 * kIndex);
      }
    } else if constexpr (kWhat == Do::kWeights) {
      u.bytes[kIndex] = LoadSixteen<uint8x16_t>(weights + kIndex * kVectorBytes);
    } else if constexpr (kWhat == Do::kStart) {
      u.dot[kIndex] = U::kOffset == 0 ? Zeros() : LoadSixteen<int32x4_t>(start[j]);
    } else if constexpr (kWhat == Do::kScaleBytes) {
      u.scale_bytes[kIndex] = LoadFour(scales + (P::kScales * j + kIndex) * kTileRows);
    } else if constexpr (kWhat == Do::kMinBytes) {
      u.min_bytes = LoadFour(scales + (P::kScales * kBlocks + j) * kTileRows);
    } else if constexpr (kWhat == Do::kSums) {
      u.sums = LoadSixteen<int32x4_t>(x->sum + j / 4 * 4);
    } else if constexpr (kWhat == Do::kD) {
      u.d_halves = LoadEight(halves);
    } else if constexpr (kWhat == Do::kDmin) {
      u.dmin_halves = LoadEight(halves + 2 * kTileRows);
    } else if constexpr (kWhat == Do::kActivationScales) {
      u.activation_scales = LoadSixteen<float32x4_t>(x->d + j / 4 * 4);
    } else if constexpr (kWhat == Do::kUnpack) {
      if constexpr (P::kInTriples) {
        u.w[kIndex] = FourTimes(u.bytes[kIndex / 4 * 3 + kIndex % 4]);
      } else if constexpr (kIndex < 4) {
        u.w[kIndex] = And(u.bytes[kIndex], constants.mask);
      } else {
        u.w[kIndex] = UpperNibbles(u.bytes[kIndex % 4]);
      }
    } else if constexpr (kWhat == Do::kLookUp) {
      u.w[kIndex] = LookUp(constants.table, u.w[kIndex]);
    } else if constexpr (kWhat == Do::kJoin) {
      u.w[kIndex] = InsertBelow<2>(u.bytes[kIndex / 4 * 3], u.bytes[kIndex / 4 * 3 + 1]);
    } else if constexpr (kWhat == Do::kJoinMore) {
      u.w[kIndex] = InsertBelow<4>(u.w[kIndex], u.bytes[kIndex / 4 * 3 + 2]);
    } else if constexpr (kWhat == Do::kMask) {
      u.w[kIndex] = And(u.w[kIndex], constants.mask);
    } else if constexpr (kWhat == Do::kDot) {
      constexpr int kHalf = kIndex / 4, kSum = U::kInHalves ? kHalf : 0;
      u.dot[kSum] = AddDots<kIndex % 4>(u.dot[kSum], u.w[kIndex], of_block.a[kHalf]);
    } else if constexpr (kWhat == Do::kWidenScale) {
      if constexpr (U::kUnsignedScales) {
        u.scale[kIndex] = vreinterpretq_s32_u8(LookUp(u.scale_bytes[kIndex], constants.widen));
      } else {
        u.scale_words[kIndex] = BytesToWords(u.scale_bytes[kIndex]);
      }
    } else if constexpr (kWhat == Do::kWidenScaleMore) {
      u.scale[kIndex] = WordsToInts(u.scale_words[kIndex]);
    } else if constexpr (kWhat == Do::kScaleSum) {
      u.dot[0] =
          kIndex == 0 ? Multiply(u.dot[0], u.scale[0]) : AddProduct(u.dot[0], u.dot[1], u.scale[1]);
    } else if constexpr (kWhat == Do::kSumToFloats) {
      u.floats = P::kInTriples ? FourthToFloats(u.dot[0]) : ToFloats(u.dot[0]);
    } else if constexpr (kWhat == Do::kWidenD) {
      u.d = ToFloats(u.d_halves);
    } else if constexpr (kWhat == Do::kFactor) {
      u.factor = MultiplyByLane<kLane>(of_chunk.d, u.activation_scales);
    } else if constexpr (kWhat == Do::kTerm) {
      u.term = Multiply(u.factor, u.floats);
    } else if constexpr (kWhat == Do::kWidenMin) {
      u.min = vreinterpretq_s32_u8(LookUp(u.min_bytes, constants.widen));
    } else if constexpr (kWhat == Do::kMinProduct) {
      u.min = MultiplyByLane<kLane>(u.min, u.sums);
    } else if constexpr (kWhat == Do::kMinToFloats) {
      u.min_floats = ToFloats(u.min);
    } else if constexpr (kWhat == Do::kWidenDmin) {
      u.dmin = ToFloats(u.dmin_halves);
    } else if constexpr (kWhat == Do::kMinFactor) {
      u.min_factor = MultiplyByLane<kLane>(of_chunk.dmin, u.activation_scales);
    } else if constexpr (kWhat == Do::kMinTerm) {
      u.min_term = Multiply(u.min_factor, u.min_floats);
    } else if constexpr (kWhat == Do::kSubtractMin) {
      u.term = Subtract(u.term, u.min_term);
    } else {
      static_assert(kWhat == Do::kAdd);
      sums.of[j][kSlice] = Add(sums.of[j][kSlice], u.term);
    }
  }
};

// Adds the terms of chunk t, which has kBlocks blocks, to the sums.
template <Type kType, int kBlocks>
TRINE_INLINE OrderedSums AddChunk(const uint8_t* chunk, const OrderedColumn<kType>& column,
                                  int64_t t, OrderedConstants constants, OrderedSums sums) {
  using Chunk = OrderedChunk<kType, kBlocks>;
  static_assert(Chunk::IsInOrder());
  Chunk run;
  run.chunk = chunk;
  run.x = &column.x[t * column.step];
  run.start = column.start + (Unit<kType>::kOffset == 0 ? 0 : t * quant::kSuperGroups);
  run.constants = constants;
  run.sums = sums;
  RunInOrder(run);
  return run.sums;
}

// The number of blocks that an incomplete last chunk may have (types of 32-value blocks), as in
// rows of 896 values. Other rows go through packed_dot.h.
constexpr int kOrderedRest = 4;
template <Type kType>
TRINE_INLINE bool CanBeOrdered(int64_t k) {
  return Format<kType>::kBlockValues != quant::kGroupValues ||
         k % (kOrderedRest * quant::kGroupValues) == 0;
}

// Multiplies a group, whose rows have `blocks` blocks, with a column. Sets `dots`, by slice.
template <Type kType>
TRINE_INLINE void DotOrderedGroup(const uint8_t* chunk, int64_t blocks,
                                  const OrderedColumn<kType>& column, OrderedConstants constants,
                                  SliceFloats (&dots)[kSlices]) {
  OrderedSums sums;
  TRINE_UNROLL
  for (int j = 0; j < quant::kSuperGroups; ++j) {
    TRINE_UNROLL
    for (int i = 0; i < kSlices; ++i) sums.of[j][i] = vdupq_n_f32(0.0f);
  }
  const int64_t whole = blocks / quant::kSuperGroups;
  for (int64_t t = 0; t < whole; ++t) {
    sums = AddChunk<kType, quant::kSuperGroups>(chunk, column, t, constants, sums);
    chunk += Packed<kType>::ChunkBytes(quant::kSuperGroups);
  }
  if constexpr (Format<kType>::kBlockValues == quant::kGroupValues) {
    if (blocks % quant::kSuperGroups != 0) {
      sums = AddChunk<kType, kOrderedRest>(chunk, column, whole, constants, sums);
    }
  }
  TRINE_UNROLL
  for (int i = 0; i < kSlices; ++i) {
    const auto s = [&](int j) { return SliceFloats{sums.of[j][i]}; };
    dots[i] = ((s(0) + s(4)) + (s(2) + s(6))) + ((s(1) + s(5)) + (s(3) + s(7)));
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
