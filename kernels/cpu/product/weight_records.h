// Weights in the order in which AMX's tiles multiply them. A record is one block of 16 rows with
// its scales. The records of a row tile are sorted by class, as those of activations are
// (activation_records.h).

#pragma once

#include <cstdint>

#include "kernels/cpu/product/chunk_tile.h"
#include "kernels/cpu/product/dot_columns.h"
#include "kernels/cpu/product/format_traits.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {

// Returns the traits of a format's records. They have no offset, because their bytes are weights.
constexpr FormatTraits RecordTraits(FormatTraits traits) {
  return {.scales = traits.scales, .minimums = traits.minimums};
}

template <FormatTraits kTraits>
struct alignas(64) WeightRecord {
  // The indices of `floats`.
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

// Expands kTileRows rows, the first of which is `first`, into records of RecordTraits: the blocks
// of some chunks, and records of zeros up to eight if a row has fewer blocks. Rows from
// `end` on hold nothing of use.
using ExpandFunction = void (*)(const WeightRows& weights, int64_t first, int64_t end, Range chunks,
                                void* records);

struct Expansion {
  ExpandFunction expand;
  FormatTraits traits;  // from RecordTraits
};
// Returns the function that expands these weights, and the traits of its records.
Expansion ExpansionOf(const WeightRows& weights);

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
