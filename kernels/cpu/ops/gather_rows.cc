#include "kernels/cpu/levels/ops.h"
#include "kernels/cpu/product/packed_format.h"
#include "kernels/cpu/simd/map_row.h"
#include "kernels/cpu/simd/row_readers.h"
#include "kernels/cpu/simd/vec_math.h"
#include "kernels/quant/dequantize.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Writes the values that row `lane` of a slice has in a block, as bytes.
template <Type kType>
void ValuesOfRow(const uint8_t* block, int lane, int8_t* values) {
  SliceBytes w[2][4];
  LoadHalf<kType, 0>(block, w[0]);
  LoadHalf<kType, 1>(block, w[1]);
  uint8_t bytes[2][4][4 * kSliceRows];
  for (int i = 0; i < 8; ++i) Store(w[i / 4][i % 4], bytes[i / 4][i % 4]);
  for (int i = 0; i < quant::kGroupValues; ++i) {
    const QuadPlace at = PlaceOf<Packed<kType>::kInPairs>(lane, i % 16);
    values[i] =
        static_cast<int8_t>(bytes[i / 16][at.vector][at.byte] - OffsetOf(Packed<kType>::kTraits));
  }
}

TRINE_INLINE float Lane(SliceFloats x, int lane) {
  float lanes[kSliceRows];
  Store(x, lanes);
  return lanes[lane];
}

// Decodes block j of a row, with the arithmetic of plain rows.
template <Type kType>
void DecodeBlock(const uint8_t* chunk, int blocks, int j, int row, float* y) {
  using P = Packed<kType>;
  const int first = row / kSliceRows * kSliceRows, lane = row % kSliceRows;
  const BlockScales s = LoadScales<kType>(chunk, blocks, j, first);
  int8_t q[quant::kGroupValues];
  ValuesOfRow<kType>(chunk + P::HeaderBytes(blocks) + j * P::kBlockBytes + 4 * first, lane, q);
  for (int h = 0; h < 2; ++h) {
    float scaled = Lane(s.d, lane), minimum = 0.0f;
    if constexpr (P::kScales > 0) scaled = scaled * Lane(s.scale[P::kScales == 2 ? h : 0], lane);
    if constexpr (P::kHasMins) minimum = Lane(s.dmin, lane) * Lane(s.min, lane);
    if constexpr (P::kTraits.minimums == Minimums::kAdded) minimum = Lane(s.dmin, lane) * -1.0f;
    Store(Canon(Splat<16>(scaled) * LoadI8<16>(q + 16 * h) - Splat<16>(minimum)), y + 16 * h);
  }
}

template <Type kType>
void DecodeRowOf(const uint8_t* chunk, int64_t k, int row, float* y) {
  const int64_t all = k / quant::kGroupValues;
  for (int64_t first = 0; first < all; first += quant::kSuperGroups) {
    const int64_t left = all - first;
    const int blocks = static_cast<int>(left < quant::kSuperGroups ? left : quant::kSuperGroups);
    for (int j = 0; j < blocks; ++j) {
      DecodeBlock<kType>(chunk, blocks, j, row, y + (first + j) * quant::kGroupValues);
    }
    chunk += Packed<kType>::ChunkBytes(blocks);
  }
}

// Decodes row `row` of a packed matrix into y, as GatherRows does.
void DecodePackedRow(const View& table, int64_t row, float* y) {
  const std::byte* group = table.data + row / kTileRows * table.strides[1];
  PackedTypes::Call(table.type, [&]<Type kType>() {
    DecodeRowOf<kType>(reinterpret_cast<const uint8_t*>(group), table.dims[0],
                       static_cast<int>(row % kTileRows), y);
  });
}

using quant::Type;

// Decodes a plain row with the reference's code. That is fast enough: one row per token is little
// compared with the matrices of the model.
void DecodeQuantized(Type type, const std::byte* row, int64_t n, float* to) {
  quant::Group group;
  for (int64_t i = 0; i < n; i += quant::kGroupValues) {
    quant::LoadGroup(type, row, i / quant::kGroupValues, &group);
    for (int h = 0; h < 2; ++h) {
      const float scaled = group.d * static_cast<float>(group.scale[h]);
      const float minimum = group.dmin * static_cast<float>(group.min[h]);
      const F32x16 q = LoadI8<16>(group.q + 16 * h);
      Store(Canon(Splat<16>(scaled) * q - Splat<16>(minimum)), to + i + 16 * h);
    }
  }
}

template <typename Row>
void DecodeFloats(const std::byte* row, int64_t n, float* to) {
  const int64_t whole = n / kLanes * kLanes;
  CopyRow<kLanes>(Row(), row, 0, whole, to);
  float tail[kLanes];
  CopyRow<kLanes>(Row(), row, whole, n - whole, tail);
  for (int64_t i = whole; i < n; ++i) to[i] = tail[i - whole];
  MapRow(to, to, n, [](auto value) { return Canon(value); });
}

void DecodeRow(Type type, const std::byte* row, int64_t n, float* to) {
  switch (type) {
    case Type::kF32:
      return DecodeFloats<RowF32>(row, n, to);
    case Type::kF16:
      return DecodeFloats<RowF16>(row, n, to);
    case Type::kBF16:
      return DecodeFloats<RowBF16>(row, n, to);
    default:
      return DecodeQuantized(type, row, n, to);
  }
}

}  // namespace

void GatherRows(const View& table, const View& ids, const View& dst, Range rows) {
  const int64_t k = table.dims[0];
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int32_t id = I32Row(ids, 0)[r];
    float* y = F32Row(dst, r);
    if (id < 0 || id >= table.dims[1]) {
      __builtin_memset(y, 0, static_cast<size_t>(k) * sizeof(float));
      continue;
    }
    if (table.packed) {
      DecodePackedRow(table, id, y);
    } else {
      DecodeRow(table.type, RowAt(table, id), k, y);
    }
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
