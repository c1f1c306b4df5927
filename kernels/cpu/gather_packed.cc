#include "kernels/cpu/gather_packed.h"

#include "kernels/cpu/packed_format.h"
#include "kernels/cpu/vec_math.h"
#include "kernels/cpu/with_packed.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// The values of row `lane` of a slice in a block, as bytes.
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

// The same arithmetic as for rows of a file.
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

}  // namespace

void DecodePackedRow(const View& table, int64_t row, float* y) {
  const std::byte* group = table.data + row / kTileRows * table.strides[1];
  WithPackedType(table.type, [&]<Type kType>() {
    DecodeRowOf<kType>(reinterpret_cast<const uint8_t*>(group), table.dims[0],
                       static_cast<int>(row % kTileRows), y);
  });
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
