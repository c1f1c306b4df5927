#include "kernels/quant/dequantize.h"

#include <algorithm>
#include <cstring>

#include "kernels/quant/float_bits.h"
#include "kernels/quant/group_words.h"

namespace trine::quant {
namespace {

void DecodeGroup(Type type, const void* row, int64_t index, int count, float* out) {
  Group group;
  LoadGroup(type, row, index, &group);
  for (int i = 0; i < count; ++i) {
    const int h = i / 16;
    const float scaled = group.d * static_cast<float>(group.scale[h]);
    const float minimum = group.dmin * static_cast<float>(group.min[h]);
    out[i] = scaled * static_cast<float>(group.q[i]) - minimum;
  }
}

template <Type kType, class Source>
void Load(const Source& source, int64_t index, Group* g) {
  constexpr GroupForm kForm = FormOf(kType);
  const GroupWords words = TakeGroup<kType>(source, static_cast<uint32_t>(index));
  g->d = kType == Type::kMXFP4 ? FromBits(Mxfp4ScaleBits(words.d)) : F16ToF32(words.d);
  g->dmin = kForm.minimum ? F16ToF32(words.dmin) : 0.0f;
  for (int h = 0; h < 2; ++h) {
    g->scale[h] = words.scale[h];
    g->min[h] = kForm.minimum ? words.min[h] : 0;
  }
  uint8_t bytes[kGroupValues];
  std::memcpy(bytes, words.q, sizeof(bytes));  // words are little-endian: see block_types.cc
  for (int i = 0; i < kGroupValues; ++i) {
    g->q[i] = kForm.table == NibbleTable::kIq4     ? kIq4Values[bytes[i]]
              : kForm.table == NibbleTable::kMxfp4 ? kMxfp4Values[bytes[i]]
                                                   : static_cast<int8_t>(bytes[i] - kForm.zero);
  }
}

void LoadQ8Kv(const BlockQ8_KV& block, Group* g) {
  g->d = block.d;
  g->dmin = 0.0f;
  g->scale[0] = g->scale[1] = 1;
  g->min[0] = g->min[1] = 0;
  std::copy(block.q, block.q + kGroupValues, g->q);
}

}  // namespace

void DequantizeGroup(Type type, const void* row, int64_t group, int count, float* out) {
  const int64_t first = group * kGroupValues;
  switch (type) {
    case Type::kF32:
      std::copy_n(static_cast<const float*>(row) + first, count, out);
      return;
    case Type::kF16:
      std::transform(static_cast<const uint16_t*>(row) + first,
                     static_cast<const uint16_t*>(row) + first + count, out, F16ToF32);
      return;
    case Type::kBF16:
      std::transform(static_cast<const uint16_t*>(row) + first,
                     static_cast<const uint16_t*>(row) + first + count, out, Bf16ToF32);
      return;
    default:
      DecodeGroup(type, row, group, count, out);
  }
}

void DequantizeRow(Type type, const void* row, int64_t values, float* out) {
  for (int64_t first = 0; first < values; first += kGroupValues) {
    const int64_t count = std::min<int64_t>(kGroupValues, values - first);
    DequantizeGroup(type, row, first / kGroupValues, static_cast<int>(count), out + first);
  }
}

void LoadGroup(Type type, const void* row, int64_t index, Group* group) {
  const bool quantised = WithBlocks(type, [&](auto blocks) {
    constexpr Type kType = decltype(blocks)::kType;
    if constexpr (kType == Type::kQ8_KV) {
      LoadQ8Kv(static_cast<const BlockQ8_KV*>(row)[index], group);
    } else if constexpr (kType == Type::kMXFP4) {
      Load<kType>(ByteSource{static_cast<const uint8_t*>(row)}, index, group);
    } else {
      Load<kType>(HalfSource{static_cast<const uint16_t*>(row)}, index, group);
    }
  });
  if (!quantised) *group = Group{};
}

}  // namespace trine::quant
