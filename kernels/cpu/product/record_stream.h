// Multiplies records of weights (weight_records.h) with records of activations by AMX's tiles, and
// adds up the products' terms in floats.
//
// A product takes long to come out of the tiles, and a processor looks only a little ahead in its
// program. So the tile instructions run some records ahead of the float instructions and are mixed
// with them, and neither waits for the other, not even between two segments. A ring in memory,
// which stays in a first-level cache, brings the products from the tiles to the floats.
//
// The order of the instructions matters; compiler fences keep it. Step s adds the terms of record
// s. Between quarters of that work it
//   multiplies record s + kMultiplied,
//   stores the product of record s + 1, and
//   loads record s + kLoaded.
// So later multiplications have begun before a product is stored, and it is read one step after
// that. Without this distance the store would wait for the tile, and the float instructions would
// wait for the store.

#pragma once

#include <cstdint>

#include "kernels/cpu/product/activation_records.h"
#include "kernels/cpu/product/weight_records.h"
#include "kernels/cpu/simd/tile_instructions.h"
#include "kernels/cpu/simd/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// The numbers that the weights contribute to the terms of a block, by row: a record's floats. They
// stay in registers while a record is computed.
template <FormatTraits kTraits>
using RowFactors = TileFloats[WeightRecord<kTraits>::kFloats];

template <FormatTraits kTraits>
TRINE_INLINE void LoadFactors(const WeightRecord<kTraits>& record, RowFactors<kTraits>& w) {
#pragma GCC unroll 8
  for (int i = 0; i < WeightRecord<kTraits>::kFloats; ++i) w[i] = Load<kTileRows>(record.floats[i]);
}

// Returns I of docs/numerics.md, as a float, of column c. `products`: the block's, or its halves'.
template <FormatTraits kTraits>
TRINE_INLINE TileFloats ScaledProducts(const TileProducts* products, const RowFactors<kTraits>& w,
                                       int c) {
  using R = WeightRecord<kTraits>;
  const TileFloats first = Convert<float>(Load<kTileRows>(products[0][c]));
  if constexpr (kTraits.scales == Scales::kNone) {
    return first;
  } else if constexpr (kTraits.scales == Scales::kBlock) {
    return first * w[R::kScale];
  } else {
    const TileFloats last = Convert<float>(Load<kTileRows>(products[1][c]));
    return first * w[R::kScale] + last * w[R::kScale + 1];
  }
}

// Returns M of docs/numerics.md, as a float, of column c.
template <FormatTraits kTraits>
TRINE_INLINE TileFloats ScaledMinimums(const ActivationSums& sums, const RowFactors<kTraits>& w,
                                       int c) {
  using R = WeightRecord<kTraits>;
  const auto splat = [](float x) { return Splat<kTileRows>(x); };
  if constexpr (kTraits.minimums == Minimums::kHalf) {
    return w[R::kMin] * splat(sums.half_sum[0][c]) + w[R::kMin + 1] * splat(sums.half_sum[1][c]);
  } else {
    return w[R::kMin] * splat(sums.sum[c]);
  }
}

// Returns the terms of column c. Only formats with minimums read `sums`.
template <FormatTraits kTraits>
TRINE_INLINE TileFloats RecordTerms(const TileProducts* products, const RowFactors<kTraits>& w,
                                    const ActivationRecord& a, const ActivationSums* sums, int c) {
  using R = WeightRecord<kTraits>;
  const TileFloats d = Splat<kTileRows>(a.d[c]);
  const TileFloats terms = (w[R::kD] * d) * ScaledProducts<kTraits>(products, w, c);
  if constexpr (kTraits.minimums == Minimums::kNone) {
    return terms;
  } else if constexpr (kTraits.minimums == Minimums::kAdded) {  // M is the sum, negated
    return terms + (w[R::kDmin] * d) * Splat<kTileRows>(sums->sum[c]);
  } else {
    return terms - (w[R::kDmin] * d) * ScaledMinimums<kTraits>(*sums, w, c);
  }
}

// The sums of a row tile and a column group: RecordSums[column][row].
using RecordSums = float[kTileColumns][kTileRows];

// A run of records of one class (block index mod 8) of a row tile and a column group. The terms of
// these records are added up in registers; their sums go to memory once, at the end.
template <FormatTraits kTraits>
struct Segment {
  const WeightRecord<kTraits>* w;  // the first record; the others follow it
  const ActivationRecord* a;
  const ActivationSums* sums;
  int64_t count;            // how many records; at least 1
  const RecordSums* start;  // the sums begin with these; null: they begin with 0
  int64_t joins;            // how many other sums are added last: join[0], join[-1], ...
  const RecordSums* join;
  RecordSums* to;  // receives the sums
};

template <FormatTraits kTraits>
class RecordStream {
 public:
  // The number of products for a block: two if each half of it has its own scale, else one.
  static constexpr int kHalves = kTraits.scales == Scales::kHalf ? 2 : 1;
  // The distances, in records, at which multiplying and loading run ahead of the float part.
  // Storing runs one record ahead. So the tiles hold the products of kMultiplied records; four
  // tiles are for products.
  static constexpr int kMultiplied = kHalves == 2 ? 2 : 3;
  static constexpr int kLoaded = kMultiplied + 1;
  static_assert(kMultiplied * kHalves <= 4);
  // The number of slots in the ring: one is read while the next one is written.
  static constexpr int kSlots = 2;
  static_assert(4 % kSlots == 0);  // records are counted mod 4
  // The number of further segments that must follow `end`. The tiles run ahead into them, so each
  // must have a count of 1 and point to readable records. Their products are never used.
  static constexpr int kBehind = kLoaded + 1;

  using Ring = TileProducts[kSlots][kHalves];

  // The number of values that one product multiplies.
  static constexpr int kValues = quant::kGroupValues / kHalves;
  // Computes the sums of segments [segment, end), at least one. REQUIRES: ConfigureTiles(kValues)
  // was called.
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
    const ActivationSums* sums;  // for the float part only
    int64_t left;                // records left in the segment
  };

  TRINE_INLINE void Enter(const Segment<kTraits>* segment, Cursor* at) {
    *at = {segment, segment->w, segment->a, segment->sums, segment->count};
  }

  // Each of these does one thing for record number kRecord (mod 4): for both halves if a block has
  // two products.
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

  // Fills tiles and ring as Step<0> expects them: earlier steps would have done that.
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

  // Adds the terms of record kStep (mod 4), mixed with the tile instructions for later records.
  template <int kStep>
  TRINE_INLINE void Step(Ring& ring, const Cursor& floats, TileFloats (&acc)[kTileColumns],
                         Cursor* tiles) {
    RowFactors<kTraits> w;
    LoadFactors(*floats.w, w);
    const TileProducts* products = ring[kStep % kSlots];
    // Multiply before the loads below, which may overwrite the tiles that are multiplied here.
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

  // Moves the float part to the next record. At the end of a segment, writes its sums and begins
  // the next one. Returns true after the last segment.
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
