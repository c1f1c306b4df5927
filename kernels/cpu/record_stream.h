// Records of weights by records of activations, one product after the other in a stream that never
// drains between them. A product takes long to come out of the tiles, so these run some records
// ahead of the float part, through a ring of products that stays in a first-level cache; and since
// a processor looks only so far ahead in its program, the instructions of both parts are mixed.
//
// The order in which they are written matters, and is kept by what looks like fences to the
// compiler. Tiles are loaded in the step before the one that multiplies them, and a product is
// stored when two more have been begun, or one of two halves each, and read a step after that: a
// tile instruction that waits is one behind which the float part's instructions pile up. They stand
// between quarters of the float part.

#ifndef TRINE_KERNELS_CPU_RECORD_STREAM_H_
#define TRINE_KERNELS_CPU_RECORD_STREAM_H_

#include <cstdint>

#include "kernels/cpu/record_terms.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Sums by column and row.
using RecordSums = float[kTileColumns][kTileRows];

// Records of one class of a row tile by those of a column group: their terms are summed in
// registers.
template <FormatTraits kTraits>
struct Segment {
  const WeightRecord<kTraits>* w;
  const ActivationRecord* a;
  const ActivationSums* sums;
  int64_t count;            // at least 1
  const RecordSums* start;  // the sums begin with these; null: with 0
  int64_t joins;            // as many sums are then added: join[0], join[-1], ...
  const RecordSums* join;
  RecordSums* to;
};

template <FormatTraits kTraits>
class RecordStream {
 public:
  // A block whose halves have scales of their own takes two products.
  static constexpr int kHalves = kTraits.scales == Scales::kHalf ? 2 : 1;
  // Records that multiplying and loading are ahead of the float part. Storing is one ahead, so
  // that as many records as multiplying is ahead have products in tiles, of which there are four.
  static constexpr int kMultiplied = kHalves == 2 ? 2 : 3;
  static constexpr int kLoaded = kMultiplied + 1;
  static_assert(kMultiplied * kHalves <= 4);
  // One that is read, one that is stored.
  static constexpr int kSlots = 2;
  static_assert(4 % kSlots == 0);  // records are counted mod 4
  // What must stand behind the last segment for the tiles to run into: segments of one record that
  // may be read.
  static constexpr int kBehind = kLoaded + 1;

  using Ring = TileProducts[kSlots][kHalves];

  // All of them, at least one. The tiles are configured for kValues.
  static constexpr int kValues = quant::kGroupValues / kHalves;
  [[gnu::noinline]] static void Run(const Segment<kTraits>* segment, const Segment<kTraits>* end,
                                    Ring& ring) {
    Cursor tiles, floats;
    Enter(segment, &tiles);
    Enter(segment, &floats);
    RunAhead<0>(ring, &tiles);
    TileFloats acc[kTileColumns];
    Start(*segment, acc);
    for (;;) {
      Step<0>(ring, floats, acc, &tiles);
      if (Advance(end, acc, &floats)) return;
      Step<1>(ring, floats, acc, &tiles);
      if (Advance(end, acc, &floats)) return;
      Step<2>(ring, floats, acc, &tiles);
      if (Advance(end, acc, &floats)) return;
      Step<3>(ring, floats, acc, &tiles);
      if (Advance(end, acc, &floats)) return;
    }
  }

 private:
  struct Cursor {
    const Segment<kTraits>* segment;
    const WeightRecord<kTraits>* w;
    const ActivationRecord* a;
    const ActivationSums* sums;  // the float part's alone
    int64_t left;                // of the segment
  };

  TRINE_INLINE void Enter(const Segment<kTraits>* segment, Cursor* at) {
    *at = {segment, segment->w, segment->a, segment->sums, segment->count};
  }

  // Record number kRecord's parts; numbers count up to four and begin again.
  template <int kRecord, int kHalf = 0>
  TRINE_INLINE void LoadRecordActivations(const Cursor& tiles) {
    if constexpr (kHalf < kHalves) {
      LoadActivations<kHalves * kRecord + kHalf>(tiles.a->q[0] + kHalf * kValues,
                                                 sizeof(tiles.a->q[0]));
      LoadRecordActivations<kRecord, kHalf + 1>(tiles);
    }
  }
  template <int kRecord, int kHalf = 0>
  TRINE_INLINE void LoadRecordWeights(const Cursor& tiles) {
    if constexpr (kHalf < kHalves) {
      LoadWeights<kHalves * kRecord + kHalf>(tiles.w->q[kHalf * kValues / 4]);
      LoadRecordWeights<kRecord, kHalf + 1>(tiles);
    }
  }
  template <int kRecord, int kHalf = 0>
  TRINE_INLINE void MultiplyRecords() {
    if constexpr (kHalf < kHalves) {
      MultiplyTiles<kHalves * kRecord + kHalf>();
      MultiplyRecords<kRecord, kHalf + 1>();
    }
  }
  template <int kRecord, int kHalf = 0>
  TRINE_INLINE void StoreRecordProducts(Ring& ring) {
    if constexpr (kHalf < kHalves) {
      StoreProducts<kHalves * kRecord + kHalf>(ring[kRecord % kSlots][kHalf]);
      StoreRecordProducts<kRecord, kHalf + 1>(ring);
    }
  }

  TRINE_INLINE void AdvanceTiles(Cursor* tiles) {
    ++tiles->w;
    ++tiles->a;
    if (--tiles->left == 0) Enter(tiles->segment + 1, tiles);
  }

  // What the steps before the first would have done.
  template <int kRecord>
  TRINE_INLINE void RunAhead(Ring& ring, Cursor* tiles) {
    LoadRecordActivations<kRecord>(*tiles);
    LoadRecordWeights<kRecord>(*tiles);
    AdvanceTiles(tiles);
    if constexpr (kRecord < kMultiplied) {
      MultiplyRecords<kRecord>();
      RunAhead<kRecord + 1>(ring, tiles);
    } else {
      StoreRecordProducts<0>(ring);
    }
  }

  template <int kQuarter>
  TRINE_INLINE void AddQuarter(const TileProducts* products, const RowFactors<kTraits>& w,
                               const Cursor& floats, TileFloats (&acc)[kTileColumns]) {
#pragma GCC unroll 4
    for (int c = 4 * kQuarter; c < 4 * kQuarter + 4; ++c) {
      acc[c] += RecordTerms<kTraits>(products, w, *floats.a, floats.sums, c);
    }
    asm volatile("" ::: "memory");
  }

  // The float part of record kStep, what the tiles do for those after it.
  template <int kStep>
  TRINE_INLINE void Step(Ring& ring, const Cursor& floats, TileFloats (&acc)[kTileColumns],
                         Cursor* tiles) {
    RowFactors<kTraits> w;
    LoadFactors(*floats.w, w);
    const TileProducts* products = ring[kStep % kSlots];
    // First: the next loads may be into the same tiles.
    MultiplyRecords<(kStep + kMultiplied) % 4>();
    AddQuarter<0>(products, w, floats, acc);
    StoreRecordProducts<(kStep + 1) % 4>(ring);
    AddQuarter<1>(products, w, floats, acc);
    LoadRecordActivations<(kStep + kLoaded) % 4>(*tiles);
    AddQuarter<2>(products, w, floats, acc);
    LoadRecordWeights<(kStep + kLoaded) % 4>(*tiles);
    AddQuarter<3>(products, w, floats, acc);
    AdvanceTiles(tiles);
  }

  TRINE_INLINE void Start(const Segment<kTraits>& segment, TileFloats (&acc)[kTileColumns]) {
#pragma GCC unroll 16
    for (int c = 0; c < kTileColumns; ++c) acc[c] = Splat<kTileRows>(0.0f);
    if (segment.start == nullptr) return;
    const RecordSums& start = *segment.start;
#pragma GCC unroll 16
    for (int c = 0; c < kTileColumns; ++c) acc[c] = Load<kTileRows>(start[c]);
  }

  TRINE_INLINE void Finish(const Segment<kTraits>& segment, TileFloats (&acc)[kTileColumns]) {
    const RecordSums* join = segment.join;
    for (int64_t i = 0; i < segment.joins; ++i, --join) {
#pragma GCC unroll 16
      for (int c = 0; c < kTileColumns; ++c) acc[c] += Load<kTileRows>((*join)[c]);
    }
    RecordSums& to = *segment.to;
#pragma GCC unroll 16
    for (int c = 0; c < kTileColumns; ++c) Store(acc[c], to[c]);
  }

  // To the next record of the float part; true behind the last.
  TRINE_INLINE bool Advance(const Segment<kTraits>* end, TileFloats (&acc)[kTileColumns],
                            Cursor* floats) {
    ++floats->w;
    ++floats->a;
    ++floats->sums;
    if (--floats->left != 0) return false;
    Finish(*floats->segment, acc);
    if (floats->segment + 1 == end) return true;
    Enter(floats->segment + 1, floats);
    Start(*floats->segment, acc);
    return false;
  }
};

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_RECORD_STREAM_H_
