// Weights in the order that tiles are multiplied in: a record is one block of 16 rows with its
// scales. Those of a row tile are sorted by class, as the activations' are (activation_records.h).

#ifndef TRINE_KERNELS_CPU_WEIGHT_RECORDS_H_
#define TRINE_KERNELS_CPU_WEIGHT_RECORDS_H_

#include <cstdint>

#include "kernels/cpu/chunk_tile.h"
#include "kernels/cpu/dot_columns.h"
#include "kernels/cpu/format_traits.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {

// What distinguishes records: their bytes are weights, whatever the format's offset.
constexpr FormatTraits RecordTraits(FormatTraits traits) {
  return {.scales = traits.scales, .minimums = traits.minimums};
}

template <FormatTraits kTraits>
struct alignas(64) WeightRecord {
  // Which of the floats are what.
  static constexpr int kD = 0;
  static constexpr int kDmin = 1;
  static constexpr int kScale = kTraits.minimums == Minimums::kNone ? 1 : 2;
  static constexpr int kMin = kScale + IntegerScales(kTraits);
  static constexpr int kFloats = kMin + IntegerMinimums(kTraits);

  uint8_t q[8][4 * kTileRows];
  float floats[kFloats][kTileRows];
};

template <FormatTraits kTraits>
TRINE_INLINE BlockParts PartsOf(WeightRecord<kTraits>* record) {
  using Record = WeightRecord<kTraits>;
  const auto part = [&](int i) { return i < Record::kFloats ? record->floats[i] : nullptr; };
  return {record->q,
          part(Record::kD),
          part(Record::kDmin),
          {part(Record::kScale), part(Record::kScale + 1)},
          {part(Record::kMin), part(Record::kMin + 1)}};
}

// Blocks of kTileRows rows from `first` on, those before `end`, as records of RecordTraits: the
// ones of some chunks, or, of a row of fewer than eight blocks, these and zeros.
using ExpandFunction = void (*)(const WeightRows& weights, int64_t first, int64_t end, Range chunks,
                                void* records);

struct Expansion {
  ExpandFunction expand;
  FormatTraits traits;  // as RecordTraits has them
};
Expansion ExpansionOf(const WeightRows& weights);

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_WEIGHT_RECORDS_H_
