// Packed weights as the kernels of gemm_by_class.h and gemm_by_warp.h read them: copied into shared
// memory as they lie in memory, and unpacked only in registers.
//
// PackedForm<type> has
//   Step       what a stage holds of one block of every row: words, and factors ready for use
//   BeginRow   begins the copies of a row's block
//   Factors    factors as they lie in memory, which a thread loads ahead
//   Fetch      loads them
//   RecordOf   turns them into the record that Step holds
//   Row        a row's factors in registers
//   Fragment   reads the words of 16 rows as MmaTile32 and MmaTile16 take them (matrix.h)
//   Add        adds the term of a block to a sum
//
// Some types unpack 4 or 16 times the values, because that takes fewer instructions, and divide d
// by as much. These are powers of two, so that no rounding changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/hip/gemm/gemm_terms.h"
#include "kernels/hip/gpu/device.h"
#include "kernels/hip/gpu/matrix.h"
#include "kernels/hip/weights/quantized.h"
#include "kernels/hip/weights/weight_tiles.h"

namespace trine::hip {

namespace packed {

// Returns dot * scale, for a dot product that began with kDotBase; offset is DotOffset(scale). Both
// ways are exact, as the result is an integer below 2^24 times a power of two.
TRINE_DEVICE float DotOffset(float scale) { return scale * -12582912.0f; }
TRINE_DEVICE float Scaled(int32_t dot, float scale, [[maybe_unused]] float offset) {
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__)
  return __fmaf_rn(FromBits(static_cast<uint32_t>(dot)), scale, offset);
#else
  return DotValue(dot) * scale;
#endif
}

struct alignas(4) PlainRecord {
  float d;
};

// Types whose only factor is d.
struct Plain {
  static constexpr bool kHalves = false;
  using Record = PlainRecord;
  struct Row {
    float d;
  };
  TRINE_DEVICE static Row Read(const Record& record) { return {record.d}; }
  TRINE_DEVICE static float Add(float sum, const Row& row, const ColumnFactors& column, int32_t dot,
                                int32_t) {
    return sum + (row.d * column.d) * DotValue(dot);
  }
};

struct alignas(16) MinimumRecord {
  float d, dmin, scale, min;
};

// Types with one scale and one minimum for a block.
struct Minimum {
  static constexpr bool kHalves = false;
  using Record = MinimumRecord;
  struct Row {
    float d, dmin, scale, min, offset;
  };
  TRINE_DEVICE static Row Read(const Record& record) {
    return {record.d, record.dmin, record.scale, record.min, DotOffset(record.scale)};
  }
  TRINE_DEVICE static float Add(float sum, const Row& row, const ColumnFactors& column, int32_t dot,
                                int32_t) {
    const float term = (row.d * column.d) * Scaled(dot, row.scale, row.offset);
    return sum + (term - (row.dmin * column.d) * (row.min * column.sum));
  }
};

struct alignas(16) HalvesRecord {
  float d, scale[2], unused;
};

// Types with a scale for each half of a block.
struct Halves {
  static constexpr bool kHalves = true;
  using Record = HalvesRecord;
  struct Row {
    float d, scale[2], offset;
  };
  TRINE_DEVICE static Row Read(const Record& record) {
    return {record.d, {record.scale[0], record.scale[1]}, DotOffset(record.scale[0])};
  }
  TRINE_DEVICE static float Add(float sum, const Row& row, const ColumnFactors& column,
                                int32_t dot0, int32_t dot1) {
    const float first = Scaled(dot0, row.scale[0], row.offset);
    return sum + (row.d * column.d) * Sum(first, DotValue(dot1), row.scale[1]);
  }

 private:
  // Returns first + dot * scale, which is exact.
  TRINE_DEVICE static float Sum(float first, float dot, float scale) {
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__)
    return __fmaf_rn(dot, scale, first);
#else
    return first + dot * scale;
#endif
  }
};

// The upper bits of a block's values, for types without any.
struct NoTop {};

// Types whose blocks have 16 bytes of nibbles. A row has the nibbles of all blocks, then a Top for
// each block. Form unpacks values; Rules says how factors are used.
template <class Form, class Rules, class Top>
struct Nibbles : Rules {
  static constexpr bool kHasTop = !std::is_empty_v<Top>;
  template <uint32_t kRows>
  struct Step {
    Word4 nibbles[kRows];
    typename Rules::Record records[kRows];
    Top top[kHasTop ? kRows : 1];
  };

  template <uint32_t kRows>
  TRINE_DEVICE static void BeginRow(const std::byte* row, int blocks, int block, uint32_t line,
                                    Step<kRows>* to) {
    BeginCopy<16>(&to->nibbles[line], weights::Words(row) + block);
    if constexpr (kHasTop) {
      const auto* top = reinterpret_cast<const Top*>(row + 16 * static_cast<int64_t>(blocks));
      BeginCopy<sizeof(Top)>(&to->top[line], top + block);
    }
  }

  template <uint32_t kRows>
  TRINE_DEVICE static void Fragment(const Step<kRows>& step, uint32_t first, uint32_t lane,
                                    uint32_t (&a)[4]) {
    TRINE_UNROLL
    for (uint32_t j = 0; j < 2; ++j) {
      const uint32_t row = first + 8 * j + lane / 4;
      const auto* words = reinterpret_cast<const uint32_t*>(step.nibbles + row);
      const Top& top = step.top[kHasTop ? row : 0];
      Form::Unpack(words[lane % 4], top, lane % 4, &a[j], &a[j + 2]);
    }
  }
};

}  // namespace packed

template <quant::Type kType>
struct PackedForm;

template <>
struct PackedForm<quant::Type::kQ4_0>
    : packed::Nibbles<PackedForm<quant::Type::kQ4_0>, packed::Plain, packed::NoTop> {
  struct Factors {
    uint32_t d;
  };
  TRINE_DEVICE static Factors Fetch(const std::byte* row, int blocks, int block) {
    return {LoadHalf(row + 16 * static_cast<int64_t>(blocks) + 2 * block)};
  }
  TRINE_DEVICE static Record RecordOf(const Factors& factors, int) {
    return {weights::LowHalf(factors.d) * 0.0625f};
  }
  // Makes nibbles minus 8, in the upper halves of bytes: 16 times the values.
  TRINE_DEVICE static void Unpack(uint32_t word, packed::NoTop, uint32_t, uint32_t* low,
                                  uint32_t* high) {
    *low = (word << 4 & 0xf0f0f0f0u) ^ 0x80808080u;
    *high = (word & 0xf0f0f0f0u) ^ 0x80808080u;
  }
};

template <>
struct PackedForm<quant::Type::kQ8_0> : packed::Plain {
  template <uint32_t kRows>
  struct Step {
    Word4 halves[2][kRows];
    Record records[kRows];
  };
  struct Factors {
    uint32_t d;
  };

  template <uint32_t kRows>
  TRINE_DEVICE static void BeginRow(const std::byte* row, int blocks, int block, uint32_t line,
                                    Step<kRows>* to) {
    // A chunk of eight blocks has the first halves of all, then the second halves.
    const int chunk = block & ~7, left = blocks - chunk;
    const Word4* from = weights::Words(row) + chunk + block;
    BeginCopy<16>(&to->halves[0][line], from);
    BeginCopy<16>(&to->halves[1][line], from + (left < 8 ? left : 8));
  }
  TRINE_DEVICE static Factors Fetch(const std::byte* row, int blocks, int block) {
    return {LoadHalf(row + 32 * static_cast<int64_t>(blocks) + 2 * block)};
  }
  TRINE_DEVICE static Record RecordOf(const Factors& factors, int) {
    return {weights::LowHalf(factors.d)};
  }
  template <uint32_t kRows>
  TRINE_DEVICE static void Fragment(const Step<kRows>& step, uint32_t first, uint32_t lane,
                                    uint32_t (&a)[4]) {
    LoadMatrices(&step.halves[lane / 16][first + lane % 16], a);
  }
};

template <>
struct PackedForm<quant::Type::kQ4_K>
    : packed::Nibbles<PackedForm<quant::Type::kQ4_K>, packed::Minimum, packed::NoTop> {
  struct Factors {
    Word4 header;
  };
  TRINE_DEVICE static Factors Fetch(const std::byte* row, int blocks, int block) {
    return {weights::Words(row)[blocks + block / 8]};
  }
  TRINE_DEVICE static Record RecordOf(const Factors& factors, int block) {
    WeightBlock decoded;
    weights::SetHeaderK(factors.header, weights::PartOf(block), &decoded);
    return {decoded.d, decoded.dmin, static_cast<float>(decoded.scale[0]),
            static_cast<float>(decoded.min[0])};
  }
  TRINE_DEVICE static void Unpack(uint32_t word, packed::NoTop, uint32_t, uint32_t* low,
                                  uint32_t* high) {
    *low = word & 0x0f0f0f0fu;
    *high = word >> 4 & 0x0f0f0f0fu;
  }
};

template <>
struct PackedForm<quant::Type::kQ5_K>
    : packed::Nibbles<PackedForm<quant::Type::kQ5_K>, packed::Minimum, uint32_t> {
  using Factors = PackedForm<quant::Type::kQ4_K>::Factors;
  TRINE_DEVICE static Factors Fetch(const std::byte* row, int blocks, int block) {
    return {weights::Words(row + 20 * static_cast<int64_t>(blocks))[block / 8]};
  }
  TRINE_DEVICE static Record RecordOf(const Factors& factors, int block) {
    return PackedForm<quant::Type::kQ4_K>::RecordOf(factors, block);
  }
  TRINE_DEVICE static void Unpack(uint32_t word, uint32_t fifth, uint32_t index, uint32_t* low,
                                  uint32_t* high) {
    fifth >>= index;
    *low = (word & 0x0f0f0f0fu) | (fifth << 4 & 0x10101010u);
    *high = (word >> 4 & 0x0f0f0f0fu) | (fifth & 0x10101010u);
  }
};

template <>
struct PackedForm<quant::Type::kQ6_K>
    : packed::Nibbles<PackedForm<quant::Type::kQ6_K>, packed::Halves, Word2> {
  struct Factors {
    uint32_t scales, d;
  };
  TRINE_DEVICE static Factors Fetch(const std::byte* row, int blocks, int block) {
    const std::byte* scales = row + 24 * static_cast<int64_t>(blocks);
    return {LoadHalf(scales + 2 * static_cast<int64_t>(block)),
            LoadHalf(scales + 2 * static_cast<int64_t>(blocks) + 2 * (block / 8))};
  }
  TRINE_DEVICE static Record RecordOf(const Factors& factors, int) {
    return {weights::LowHalf(factors.d) * 0.25f,
            {static_cast<float>(static_cast<int8_t>(factors.scales & 0xffu)),
             static_cast<float>(static_cast<int8_t>(factors.scales >> 8 & 0xffu))},
            0.0f};
  }
  // Makes the six bits minus 32, in the upper bits of bytes: 4 times the values.
  TRINE_DEVICE static void Unpack(uint32_t word, const Word2& top, uint32_t index, uint32_t* low,
                                  uint32_t* high) {
    const uint32_t shift = 2 * index;
    *low = ((word << 2 & 0x3c3c3c3cu) | (top.x >> shift << 6 & 0xc0c0c0c0u)) ^ 0x80808080u;
    *high = ((word >> 2 & 0x3c3c3c3cu) | (top.y >> shift << 6 & 0xc0c0c0c0u)) ^ 0x80808080u;
  }
};

}  // namespace trine::hip
