// Computes the float part of a block's product: the term that its factors make. Says how factors
// lie in shared memory.
//
// Integers up to 2^24 are exact as floats, and so are the products and sums of scales and integer
// dot products here. So the integer arithmetic of numerics.md may be done in floats.
#pragma once

#include <cstdint>

#include "kernels/hip/weights/weight_tiles.h"

namespace trine::hip {

// kDotBase: the value that an integer dot product begins with. DotValue returns, as a float, the
// sum that was added to it.
#if defined(__GFX10__) || defined(__GFX11__) || defined(__GFX12__)
// Zeros take no registers on RDNA.
inline constexpr int32_t kDotBase = 0;
TRINE_DEVICE float DotValue(int32_t dot) { return static_cast<float>(dot); }
#else
// Read as a float, the dot product is then 12582912 plus the sum, if the sum is below 2^22. The
// sums of all types are below that before they are scaled.
inline constexpr int32_t kDotBase = 0x4b400000;
TRINE_DEVICE float DotValue(int32_t dot) {
  return FromBits(static_cast<uint32_t>(dot)) - 12582912.0f;
}
#endif

template <Factors kFactors>
struct Terms {
  static constexpr bool kMinimum = kFactors == Factors::kMinimum ||
                                   kFactors == Factors::kScale32Minimum ||
                                   kFactors == Factors::kScale16Minimum;
  static constexpr bool kScaled = kFactors != Factors::kPlain && kFactors != Factors::kMinimum;
  // true: each half of a block has its own scale, so a block needs two integer dot products.
  static constexpr bool kHalves =
      kFactors == Factors::kScale16 || kFactors == Factors::kScale16Minimum;
  static constexpr int kRowWords = !kScaled                        ? (kMinimum ? 2 : 1)
                                   : kFactors == Factors::kScale32 ? 2
                                                                   : 4;
  static constexpr int kColumnWords = kMinimum ? 2 : 1;

  // Factors as they lie in shared memory.
  struct alignas(4 * kRowWords) RowRecord {
    uint32_t words[kRowWords];
  };
  struct alignas(4 * kColumnWords) ColumnRecord {
    uint32_t words[kColumnWords];
  };

  struct Row {
    float d, dmin, scale[2], min[2];
  };
  struct Column {
    float d, sum[2];
  };

  TRINE_DEVICE static uint32_t Pair(const int32_t (&v)[2]) {
    // The floats are integers of eight bits, so their lower halves are zeros.
    return Bits(static_cast<float>(v[0])) >> 16 | (Bits(static_cast<float>(v[1])) & 0xffff0000u);
  }

  TRINE_DEVICE static RowRecord Record(const WeightBlock& block) {
    RowRecord record;
    record.words[0] = Bits(block.d);
    if constexpr (kFactors == Factors::kMinimum) record.words[1] = Bits(block.dmin);
    if constexpr (kFactors == Factors::kScale32) {
      record.words[1] = Bits(static_cast<float>(block.scale[0]));
    }
    if constexpr (kFactors == Factors::kScale32Minimum) {
      record.words[1] = Bits(block.dmin);
      record.words[2] = Bits(static_cast<float>(block.scale[0]));
      record.words[3] = Bits(static_cast<float>(block.min[0]));
    }
    if constexpr (kFactors == Factors::kScale16) {
      record.words[1] = Bits(static_cast<float>(block.scale[0]));
      record.words[2] = Bits(static_cast<float>(block.scale[1]));
      record.words[3] = 0;
    }
    if constexpr (kFactors == Factors::kScale16Minimum) {
      record.words[1] = Bits(block.dmin);
      record.words[2] = Pair(block.scale);
      record.words[3] = Pair(block.min);
    }
    return record;
  }

  TRINE_DEVICE static Row Read(const RowRecord& record) {
    Row row{};
    row.d = FromBits(record.words[0]);
    if constexpr (kFactors == Factors::kMinimum) row.dmin = FromBits(record.words[1]);
    if constexpr (kFactors == Factors::kScale32) row.scale[0] = FromBits(record.words[1]);
    if constexpr (kFactors == Factors::kScale32Minimum) {
      row.dmin = FromBits(record.words[1]);
      row.scale[0] = FromBits(record.words[2]);
      row.min[0] = FromBits(record.words[3]);
    }
    if constexpr (kFactors == Factors::kScale16) {
      row.scale[0] = FromBits(record.words[1]);
      row.scale[1] = FromBits(record.words[2]);
    }
    if constexpr (kFactors == Factors::kScale16Minimum) {
      row.dmin = FromBits(record.words[1]);
      row.scale[0] = FromBits(record.words[2] << 16);
      row.scale[1] = FromBits(record.words[2] & 0xffff0000u);
      row.min[0] = FromBits(record.words[3] << 16);
      row.min[1] = FromBits(record.words[3] & 0xffff0000u);
    }
    return row;
  }

  // `sums`: the sums of a block's halves, from QuantizedColumns.
  TRINE_DEVICE static ColumnRecord Record(float d, uint32_t sums) {
    ColumnRecord record;
    record.words[0] = Bits(d);
    if constexpr (kMinimum && kHalves) record.words[1] = sums;
    if constexpr (kMinimum && !kHalves) {
      record.words[1] = Bits(static_cast<float>(static_cast<int16_t>(sums & 0xffffu) +
                                                static_cast<int16_t>(sums >> 16)));
    }
    return record;
  }

  TRINE_DEVICE static Column Read(const ColumnRecord& record) {
    Column column{};
    column.d = FromBits(record.words[0]);
    if constexpr (kMinimum && kHalves) {
      column.sum[0] = DotValue(kDotBase + static_cast<int16_t>(record.words[1] & 0xffffu));
      column.sum[1] = DotValue(kDotBase + static_cast<int16_t>(record.words[1] >> 16));
    }
    if constexpr (kMinimum && !kHalves) column.sum[0] = FromBits(record.words[1]);
    return column;
  }

  // Returns `sum` plus the term of a block. `dot1` is used only if the block has halves.
  TRINE_DEVICE static float Add(float sum, const Row& row, const Column& column, int32_t dot0,
                                int32_t dot1) {
    float i = DotValue(dot0);
    if constexpr (kScaled) i = i * row.scale[0];
    if constexpr (kHalves) i = i + DotValue(dot1) * row.scale[1];
    float term = (row.d * column.d) * i;
    if constexpr (kFactors == Factors::kMinimum) {
      term = term + (row.dmin * column.d) * column.sum[0];
    } else if constexpr (kMinimum) {
      float m = row.min[0] * column.sum[0];
      if constexpr (kHalves) m = m + row.min[1] * column.sum[1];
      term = term - (row.dmin * column.d) * m;
    }
    return sum + term;
  }
};

}  // namespace trine::hip
