#include "kernels/quant/group.h"

#include <algorithm>
#include <cstring>

#include "kernels/quant/float_bits.h"
#include "kernels/quant/group_words.h"

namespace trine::quant {
namespace {

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
  std::memcpy(bytes, words.q, sizeof(bytes));  // little-endian: block_types.cc
  for (int i = 0; i < kGroupValues; ++i) {
    g->q[i] = kForm.table == NibbleTable::kIq4     ? kIq4Values[bytes[i]]
              : kForm.table == NibbleTable::kMxfp4 ? kMxfp4Values[bytes[i]]
                                                   : static_cast<int8_t>(bytes[i] - kForm.zero);
  }
}

template <Type kType>
void Load(const void* row, int64_t index, Group* g) {
  Load<kType>(HalfSource{static_cast<const uint16_t*>(row)}, index, g);
}

void LoadQ8Kv(const BlockQ8_KV& block, Group* g) {
  g->d = block.d;
  g->dmin = 0.0f;
  g->scale[0] = g->scale[1] = 1;
  g->min[0] = g->min[1] = 0;
  std::copy(block.q, block.q + kGroupValues, g->q);
}

}  // namespace

void LoadGroup(Type type, const void* row, int64_t index, Group* group) {
  switch (type) {
    case Type::kQ4_0:
      return Load<Type::kQ4_0>(row, index, group);
    case Type::kQ4_1:
      return Load<Type::kQ4_1>(row, index, group);
    case Type::kQ5_0:
      return Load<Type::kQ5_0>(row, index, group);
    case Type::kQ5_1:
      return Load<Type::kQ5_1>(row, index, group);
    case Type::kQ8_0:
      return Load<Type::kQ8_0>(row, index, group);
    case Type::kQ8_KV:
      return LoadQ8Kv(static_cast<const BlockQ8_KV*>(row)[index], group);
    case Type::kIQ4_NL:
      return Load<Type::kIQ4_NL>(row, index, group);
    case Type::kMXFP4:
      return Load<Type::kMXFP4>(ByteSource{static_cast<const uint8_t*>(row)}, index, group);
    case Type::kQ2_K:
      return Load<Type::kQ2_K>(row, index, group);
    case Type::kQ3_K:
      return Load<Type::kQ3_K>(row, index, group);
    case Type::kQ4_K:
      return Load<Type::kQ4_K>(row, index, group);
    case Type::kQ5_K:
      return Load<Type::kQ5_K>(row, index, group);
    case Type::kQ6_K:
      return Load<Type::kQ6_K>(row, index, group);
    case Type::kIQ4_XS:
      return Load<Type::kIQ4_XS>(row, index, group);
    case Type::kTQ1_0:
      return Load<Type::kTQ1_0>(row, index, group);
    case Type::kTQ2_0:
      return Load<Type::kTQ2_0>(row, index, group);
    case Type::kF32:
    case Type::kF16:
    case Type::kBF16:
    case Type::kI32:
      break;
  }
  *group = Group{};
}

}  // namespace trine::quant
