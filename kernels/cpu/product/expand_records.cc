// Expands weights, packed or plain, into records for tiles.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/product/activation_records.h"
#include "kernels/cpu/product/fill_blocks.h"
#include "kernels/cpu/product/packed_format.h"
#include "kernels/cpu/product/weight_records.h"
#include "kernels/cpu/simd/amx.h"

#if TRINE_HAS_AMX

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Calls function(chunk, blocks, parts) for each of some chunks of rows of k values: with the
// chunk's number, its number of blocks, and a function that returns the place of block j.
template <FormatTraits kTraits>
TRINE_INLINE void ForEachChunk(int64_t k, Range chunks, void* to, const auto& function) {
  auto* records = static_cast<WeightRecord<kTraits>*>(to);
  const int64_t blocks = k / quant::kGroupValues;
  const int64_t before = chunks.begin * quant::kSuperGroups;
  const int64_t end = chunks.end * quant::kSuperGroups;
  const int64_t count = (end < blocks ? end : blocks) - before;
  const RecordOrder order =
      OrderOfRecords(count < quant::kSuperGroups ? quant::kSuperGroups : count);
  for (int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    const int64_t t = chunk - chunks.begin, left = blocks - chunk * quant::kSuperGroups;
    const auto parts = [&](int j) { return PartsOf(records + order.first[j] + t); };
    function(chunk, static_cast<int>(left < quant::kSuperGroups ? left : quant::kSuperGroups),
             parts);
  }
  for (int64_t j = count; j < quant::kSuperGroups; ++j) {
    __builtin_memset(records + order.first[j], 0, sizeof(*records));
  }
}

template <Type kType>
void ExpandPacked(const WeightRows& weights, int64_t first, int64_t, Range chunks, void* records) {
  using P = Packed<kType>;
  const auto* group =
      reinterpret_cast<const uint8_t*>(weights.data + first / kTileRows * weights.stride);
  ForEachChunk<RecordTraits(P::kTraits)>(
      weights.k, chunks, records, [&](int64_t index, int blocks, const auto& parts) {
        const uint8_t* chunk = group + index * P::ChunkBytes(quant::kSuperGroups);
        for (int j = 0; j < blocks; ++j) {
          FillPackedBlock<kType>(chunk, blocks, j, TileBytesAre::kWeights, parts(j));
        }
      });
}

template <Type kType>
void ExpandPlain(const WeightRows& weights, int64_t first, int64_t end, Range chunks,
                 void* records) {
  const std::byte* rows[kTileRows];
  FindRows(weights, first, end, rows);
  ForEachChunk<RecordTraits(Format<kType>::kTraits)>(
      weights.k, chunks, records, [&](int64_t index, int blocks, const auto& parts) {
        FillPlainChunk<kType>(rows, weights.k, TileBytesAre::kWeights, index, blocks, parts);
      });
}

}  // namespace

Expansion ExpansionOf(const WeightRows& weights) {
  Expansion found = {};
  if (weights.packed) {
    PackedTypes::Call(weights.type, [&]<Type kType>() {
      found = {ExpandPacked<kType>, RecordTraits(Packed<kType>::kTraits)};
    });
  } else {
    quant::CallForWeights(weights.type, [&]<Type kType>() {
      found = {ExpandPlain<kType>, RecordTraits(Format<kType>::kTraits)};
    });
  }
  return found;
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_HAS_AMX
