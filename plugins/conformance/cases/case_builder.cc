#include "plugins/conformance/cases/case_builder.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/quant/activation.h"
#include "kernels/quant/block_types.h"
#include "kernels/quant/scalar.h"
#include "trine/sdk/graph.h"

namespace trine::conformance {
namespace {

using quant::Type;

// Returns an f16 scale: mostly as in a model, sometimes zero, negative, denormal or large.
uint16_t RandomScale(Random& random) {
  switch (random.Below(16)) {
    case 0:
      return 0;
    case 1:
      return static_cast<uint16_t>(1 + random.Below(0x3ff));  // denormal
    case 2:
      return quant::F32ToF16(100.0f * random.Bell());
    default:
      return quant::F32ToF16(0.02f * random.Bell());
  }
}

// Fills a block with random base-3 digits. TQ1_0 stores their number scaled to 256, rounded up.
void FillTq1(Random& random, std::byte* block) {
  quant::BlockTQ1_0 b;
  for (uint8_t& five : b.five) five = static_cast<uint8_t>((random.Below(243) * 256 + 242) / 243);
  for (uint8_t& four : b.four) {
    four = static_cast<uint8_t>((random.Below(81) * 3 * 256 + 242) / 243);
  }
  b.d = RandomScale(random);
  std::memcpy(block, &b, sizeof(b));
}

void FillTq2(Random& random, std::byte* block) {
  quant::BlockTQ2_0 b;
  for (uint8_t& q : b.q) {
    q = 0;
    for (int i = 0; i < 4; ++i) q = static_cast<uint8_t>(q << 2 | random.Below(3));
  }
  b.d = RandomScale(random);
  std::memcpy(block, &b, sizeof(b));
}

// Sets the scales of a block that was filled with random bytes.
void SetScales(Random& random, Type type, std::byte* data) {
  quant::WithBlocks(type, [&](auto blocks) {
    using Block = typename decltype(blocks)::Block;
    if constexpr (std::is_same_v<Block, quant::BlockTQ1_0>) {
      FillTq1(random, data);
    } else if constexpr (std::is_same_v<Block, quant::BlockTQ2_0>) {
      FillTq2(random, data);
    } else if constexpr (std::is_same_v<Block, quant::BlockMXFP4>) {
      data[0] = static_cast<std::byte>(random.Below(16) == 0 ? random.Below(255)
                                                             : 112 + random.Below(24));
    } else if constexpr (!std::is_same_v<Block, quant::BlockQ8_KV>) {
      Block block;
      std::memcpy(&block, data, sizeof(block));
      block.d = RandomScale(random);
      if constexpr (requires { block.m; }) block.m = RandomScale(random);
      if constexpr (requires { block.dmin; }) block.dmin = RandomScale(random);
      std::memcpy(data, &block, sizeof(block));
    }
  });
}

void StoreFloat(Type type, float value, std::byte* out) {
  if (type == Type::kF32) {
    std::memcpy(out, &value, sizeof(value));
    return;
  }
  const uint16_t half =
      type == Type::kF16 ? quant::F32ToF16Saturated(value) : quant::F32ToBf16(value);
  std::memcpy(out, &half, sizeof(half));
}

float RandomValue(Random& random, Spread32 spread) {
  switch (spread) {
    case Spread32::kBell:
      return quant::Canon(random.Bell());
    case Spread32::kWide: {
      const auto exponent = static_cast<uint32_t>(127 - 50 + random.Below(100));
      const auto fraction = static_cast<uint32_t>(random.Next() & 0x807fffffu);
      return quant::Canon(quant::FromBits(fraction | exponent << 23));
    }
    case Spread32::kTiny:
      return quant::Canon(random.Bell() * 0x1p-50f);
    case Spread32::kZeros:
      return 0.0f;
    case Spread32::kOutliers:
      return quant::Canon(random.Bell() * (random.Below(50) == 0 ? 1000.0f : 1.0f));
  }
  return 0.0f;
}

}  // namespace

int64_t CaseBuilder::Param(uint32_t kind, int64_t value, int64_t max) {
  case_.params.push_back(value);
  return case_.graph.AddParam(kind, 1, max);
}

uint32_t CaseBuilder::Add(uint32_t role, uint32_t dtype, std::vector<int64_t> dims) {
  GraphSpec& g = case_.graph;
  const uint32_t tensor = gapped_ && role != TRINE_ROLE_TEMP
                              ? g.AddGappedTensor(role, dtype, std::move(dims))
                              : g.AddTensor(role, dtype, std::move(dims));
  const bool temp = role == TRINE_ROLE_TEMP;
  case_.images.emplace_back(temp ? 0 : g.slots.back().bytes, kGarbage);
  return tensor;
}

template <class Fill>
void CaseBuilder::FillRows(uint32_t tensor, Fill fill) {
  const trine_tensor& t = case_.graph.tensors[tensor];
  const std::vector<int64_t> max = case_.graph.MaxParams();
  const sdk::Dims dims = sdk::ResolveDims(t, max.data());
  const sdk::Dims strides = sdk::ResolveStrides(t, dims);
  const auto row_bytes = static_cast<size_t>(sdk::ValueBytes(t.dtype, dims[0]));
  std::byte* data = case_.images[t.slot].data() + t.offset;
  for (int64_t i3 = 0; i3 < dims[3]; ++i3) {
    for (int64_t i2 = 0; i2 < dims[2]; ++i2) {
      for (int64_t i1 = 0; i1 < dims[1]; ++i1) {
        fill(data + i1 * strides[1] + i2 * strides[2] + i3 * strides[3], row_bytes);
      }
    }
  }
}

uint32_t CaseBuilder::Input(std::vector<int64_t> dims, Spread32 spread) {
  const uint32_t tensor = Add(TRINE_ROLE_IO, TRINE_DTYPE_F32, std::move(dims));
  FillRows(tensor, [&](std::byte* row, size_t bytes) {
    FillWeights(random_, TRINE_DTYPE_F32, spread, row, bytes);
  });
  return tensor;
}

uint32_t CaseBuilder::Weight(uint32_t dtype, std::vector<int64_t> dims) {
  const bool gapped = gapped_;
  gapped_ = false;  // rows of weights have no gaps, as in the file
  const uint32_t tensor = Add(TRINE_ROLE_CONSTANT, dtype, std::move(dims));
  gapped_ = gapped;
  FillRows(tensor,
           [&](std::byte* row, size_t bytes) { FillWeights(random_, dtype, spread_, row, bytes); });
  return tensor;
}

uint32_t CaseBuilder::Cache(uint32_t dtype, std::vector<int64_t> dims) {
  const uint32_t tensor = Add(TRINE_ROLE_STATE, dtype, std::move(dims));
  FillRows(tensor, [&](std::byte* row, size_t bytes) { FillCache(random_, dtype, row, bytes); });
  return tensor;
}

uint32_t CaseBuilder::Ints(std::vector<int64_t> dims, const std::vector<int32_t>& values) {
  const uint32_t tensor = Add(TRINE_ROLE_IO, TRINE_DTYPE_I32, std::move(dims));
  size_t next = 0;
  FillRows(tensor, [&](std::byte* row, size_t bytes) {
    const size_t n = std::min(bytes / sizeof(int32_t), values.size() - next);
    std::memcpy(row, values.data() + next, n * sizeof(int32_t));
    next += n;
  });
  return tensor;
}

uint32_t CaseBuilder::Output(uint32_t dtype, std::vector<int64_t> dims) {
  return Add(TRINE_ROLE_IO, dtype, std::move(dims));
}

uint32_t CaseBuilder::Temp(std::vector<int64_t> dims) {
  return Add(TRINE_ROLE_TEMP, TRINE_DTYPE_F32, std::move(dims));
}

float Random::Bell() {
  float sum = -6.0f;
  for (int i = 0; i < 12; ++i) sum += Unit();
  return sum;
}

void FillWeights(Random& random, uint32_t dtype, Spread32 spread, std::byte* data, size_t bytes) {
  const auto type = static_cast<Type>(dtype);
  const auto block_bytes = static_cast<size_t>(quant::Traits(type).block_bytes);
  for (size_t at = 0; at + block_bytes <= bytes; at += block_bytes) {
    if (!quant::IsQuantized(type)) {
      float value = RandomValue(random, spread);
      // Rounding to bf16 can leave the canonical range at its upper end.
      if (type == Type::kBF16) value = quant::Canon(quant::Bf16ToF32(quant::F32ToBf16(value)));
      StoreFloat(type, value, data + at);
      continue;
    }
    for (size_t i = 0; i < block_bytes; ++i) data[at + i] = static_cast<std::byte>(random.Next());
    SetScales(random, type, data + at);
  }
}

void FillCache(Random& random, uint32_t dtype, std::byte* data, size_t bytes) {
  const auto type = static_cast<Type>(dtype);
  const auto block_bytes = static_cast<size_t>(quant::Traits(type).block_bytes);
  for (size_t at = 0; at + block_bytes <= bytes; at += block_bytes) {
    if (type != Type::kQ8_KV) {
      StoreFloat(type, random.Bell(), data + at);
      continue;
    }
    float values[quant::kGroupValues];
    for (float& v : values) v = quant::Canon(random.Bell());
    quant::BlockQ8_KV block;
    quant::QuantizeKv(values, &block);
    std::memcpy(data + at, &block, sizeof(block));
  }
}

}  // namespace trine::conformance
