// Loads rows of f32, f16 and bf16 for the lanes of a group. Each lane gets the values of one class
// (index mod 32) from a run of kValues * 32 values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/hip/gpu/device.h"
#include "kernels/quant/block_types.h"

namespace trine::hip {

// Returns a value of a row in the file's layout.
template <quant::Type kType>
TRINE_DEVICE float FileValue(const std::byte* row, uint32_t index) {
  if constexpr (kType == quant::Type::kF32) {
    return reinterpret_cast<const float*>(row)[index];
  } else {
    const uint16_t half = reinterpret_cast<const uint16_t*>(row)[index];
    return kType == quant::Type::kF16 ? HalfToFloat(half) : quant::Bf16ToF32(half);
  }
}

// Loads any row of a file: lane l has class l.
template <quant::Type kType>
struct ScalarFloats {
  static constexpr int kValues = 4;
  struct Raw {
    float value[kValues];
  };
  TRINE_DEVICE static int ClassOf(int lane) { return lane; }
  // Returns the bit by which two lanes differ if their classes are joined in step 0, 1, .. of a
  // sum.
  TRINE_DEVICE static constexpr int JoinMask(int step) { return 16 >> step; }
  TRINE_DEVICE static Raw Load(const std::byte* row, uint32_t run, int lane) {
    Raw raw;
    for (int i = 0; i < kValues; ++i) {
      raw.value[i] = FileValue<kType>(row, run + static_cast<uint32_t>(lane + 32 * i));
    }
    return raw;
  }
  TRINE_DEVICE static void Spread(const Raw& raw, int /*lane*/, float (&w)[kValues]) {
    for (int i = 0; i < kValues; ++i) w[i] = raw.value[i];
  }
  TRINE_DEVICE static float One(const std::byte* row, uint32_t /*k*/, uint32_t index) {
    return FileValue<kType>(row, index);
  }
};

// Loads rows of a file that begin at multiples of four values: a lane loads four neighbouring
// values. Lane 8 m + j loads values 4 j to 4 j + 3 of the run's m-th 32 values. Spread then gives
// it those of class 4 j + m.
template <quant::Type kType>
struct VectorFloats {
  static constexpr int kValues = 4;
  struct Raw {
    float value[kValues];
  };
  TRINE_DEVICE static int ClassOf(int lane) { return lane % 8 * 4 + lane / 8; }
  TRINE_DEVICE static constexpr int JoinMask(int step) {
    return step < 3 ? 4 >> step : 64 >> (step - 1);
  }
  TRINE_DEVICE static Raw Load(const std::byte* row, uint32_t run, int lane) {
    const uint32_t at = run / 4 + static_cast<uint32_t>(lane);
    if constexpr (kType == quant::Type::kF32) {
      const Float4 four = reinterpret_cast<const Float4*>(row)[at];
      return {{four.x, four.y, four.z, four.w}};
    } else {
      const Word2 four = LoadOnce(reinterpret_cast<const Word2*>(row) + at);
      const auto value = [](uint32_t half) {
        return kType == quant::Type::kF16 ? HalfToFloat(static_cast<uint16_t>(half))
                                          : FromBits(half << 16);
      };
      return {{value(four.x & 0xffffu), value(four.x >> 16), value(four.y & 0xffffu),
               value(four.y >> 16)}};
    }
  }
  TRINE_DEVICE static void Spread(const Raw& raw, int lane, float (&w)[kValues]) {
    const bool odd = (lane & 8) != 0, upper = (lane & 16) != 0;
    const float* v = raw.value;
    const float swapped0 = LaneXor(odd ? v[0] : v[1], 8);
    const float swapped1 = LaneXor(odd ? v[2] : v[3], 8);
    const float low0 = odd ? swapped0 : v[0], low1 = odd ? v[1] : swapped0;
    const float high0 = odd ? swapped1 : v[2], high1 = odd ? v[3] : swapped1;
    const float other0 = LaneXor(upper ? low0 : high0, 16);
    const float other1 = LaneXor(upper ? low1 : high1, 16);
    w[0] = upper ? other0 : low0;
    w[1] = upper ? other1 : low1;
    w[2] = upper ? high0 : other0;
    w[3] = upper ? high1 : other1;
  }
  TRINE_DEVICE static float One(const std::byte* row, uint32_t /*k*/, uint32_t index) {
    return FileValue<kType>(row, index);
  }
};

// Loads packed rows of f16 (kernels/quant/packed_rows.h): lane l has class l.
struct PackedHalves {
  static constexpr int kValues = 8;
  using Raw = Word4;

  TRINE_DEVICE static int ClassOf(int lane) { return lane; }
  TRINE_DEVICE static constexpr int JoinMask(int step) { return 16 >> step; }
  TRINE_DEVICE static Raw Load(const std::byte* row, uint32_t run, int lane) {
    return LoadOnce(reinterpret_cast<const Word4*>(row) + run / 8 + lane);
  }
  TRINE_DEVICE static void Spread(const Raw& raw, int /*lane*/, float (&w)[kValues]) {
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
    for (int i = 0; i < kValues; ++i) {
      w[i] = HalfToFloat(static_cast<uint16_t>(words[i / 2] >> (16 * (i % 2))));
    }
  }
  TRINE_DEVICE static float One(const std::byte* row, uint32_t k, uint32_t index) {
    const uint32_t run = index & ~255u, lane = index & 31u, pair = (index & 255u) / 64;
    const uint32_t word = run + 256 <= k ? lane * 4 + pair : pair * 32 + lane;
    const uint32_t at = run + 2 * word + (index & 32u) / 32;
    return HalfToFloat(reinterpret_cast<const uint16_t*>(row)[at]);
  }
};

}  // namespace trine::hip
