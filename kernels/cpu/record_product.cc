#include "kernels/cpu/record_product.h"

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/amx.h"
#include "kernels/cpu/finish.h"

#if TRINE_HAS_AMX

#include "kernels/cpu/record_stream.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

static_assert(kTileColumns == kInterleavedRows);

// So many row tiles meet so many column groups at a time, a class of all of them before the next
// class: what they read of a class stays in a first-level cache.
constexpr int kMostTiles = 4;
constexpr int kMostGroups = 4;
// Expanded weights, and with the rest (sums and products) less than a kernel's stack may be.
constexpr int64_t kWeightBytes = 172 << 10;
// Activations that expanded weights meet before the next are expanded: half of a second-level
// cache.
constexpr int64_t kActivationBytes = 1 << 20;

// A pair of row tile and column group has up to three sums that wait to be joined.
constexpr int kWaiting = 3;

// How a row of k values is gone through: in one pass where the records of one row tile at least fit
// the stack, else in several of some chunks each, one row tile at a time, with the sums of all
// classes kept in between.
template <FormatTraits kTraits>
struct Plan {
  int64_t k, chunks, records;
  int64_t tiles = kMostTiles;
  int64_t passes = 1;
  int64_t block_groups;  // column groups to kActivationBytes

  explicit Plan(int64_t k) : k(k), chunks(ActivationChunks(k)), records(RecordCount(k)) {
    constexpr int64_t kRecordBytes = sizeof(WeightRecord<kTraits>);
    while (tiles > 1 && tiles * records * kRecordBytes > kWeightBytes) tiles /= 2;
    if (records * kRecordBytes > kWeightBytes) {
      constexpr int64_t kChunks = kWeightBytes / (quant::kSuperGroups * kRecordBytes);
      passes = (chunks + kChunks - 1) / kChunks;
    }
    const int64_t group_bytes = records * int64_t{sizeof(ActivationRecord)};
    block_groups = kActivationBytes / group_bytes / kMostGroups * kMostGroups;
    if (block_groups < kMostGroups) block_groups = kMostGroups;
  }

  // The chunks of a pass: as many, or one more, so that none is left with less than a chunk.
  Range ChunksOf(int64_t pass) const {
    return {chunks * pass / passes, chunks * (pass + 1) / passes};
  }
  // The records of those.
  int64_t RecordsOf(Range range) const {
    const int64_t end = range.end * quant::kSuperGroups;
    return (end < records ? end : records) - range.begin * quant::kSuperGroups;
  }
};

// On the stack. Of the sums, those of pair (r, g) that wait are kWaiting from
// kWaiting * (r * kMostGroups + g) on; behind those of the first row tile, which is the only one
// then, lie the sums of each group's classes between passes.
template <FormatTraits kTraits>
struct alignas(4096) Room {
  typename RecordStream<kTraits>::Ring ring;
  RecordSums sums[kWaiting * kMostTiles * kMostGroups];
  alignas(64) std::byte weights[kWeightBytes];
  Segment<kTraits>
      segments[kMostTiles * kMostGroups * quant::kSuperGroups + RecordStream<kTraits>::kBehind];
};
static_assert(kMostGroups * (kWaiting + quant::kSuperGroups) <=
              kWaiting * kMostTiles * kMostGroups);

RecordSums* WaitingSums(RecordSums* sums, int64_t tile, int64_t group) {
  return sums + kWaiting * (tile * kMostGroups + group);
}

RecordSums* SumsBetweenPasses(RecordSums* sums, int64_t group, int position) {
  return sums + kMostGroups * kWaiting + group * quant::kSuperGroups + position;
}

// Some row tiles and some column groups.
struct Pairs {
  int64_t first_tile_row;  // the first row of the first tile
  int64_t tiles;
  int64_t first_group, groups;
};

// Where the sums of the class at `position` begin, what is added to them and where they go. Of the
// classes before it, as many sums wait as the position has ones in binary; it is joined with as
// many as it ends with.
template <FormatTraits kTraits>
void SetSums(const Plan<kTraits>& plan, int64_t pass, int position, int64_t tile, int64_t group,
             RecordSums* sums, Segment<kTraits>* segment) {
  segment->start = pass == 0 ? nullptr : SumsBetweenPasses(sums, group, position);
  if (pass + 1 < plan.passes) {
    segment->joins = 0;
    segment->join = nullptr;
    segment->to = SumsBetweenPasses(sums, group, position);
    return;
  }
  const int waiting = __builtin_popcount(static_cast<unsigned>(position));
  const int joins = __builtin_ctz(~static_cast<unsigned>(position));
  RecordSums* own = WaitingSums(sums, tile, group);
  segment->joins = joins;
  segment->join = joins == 0 ? nullptr : own + waiting - 1;
  segment->to = own + waiting - joins;
}

// A pass's products of some pairs; its weights lie in room->weights.
template <FormatTraits kTraits>
void MultiplyPairs(const Plan<kTraits>& plan, int64_t pass, const Pairs& pairs,
                   const RecordColumns& columns, Room<kTraits>* room) {
  const Range chunks = plan.ChunksOf(pass);
  const int64_t records = plan.RecordsOf(chunks);
  const RecordOrder w_order = OrderOfRecords(records), a_order = OrderOfRecords(plan.records);
  const auto* weights = reinterpret_cast<const WeightRecord<kTraits>*>(room->weights);
  Segment<kTraits>* next = room->segments;
  for (int position = 0; position < quant::kSuperGroups; ++position) {
    const int j = kClassOrder[position];
    for (int64_t g = 0; g < pairs.groups; ++g) {
      const auto a = RecordsOfGroup(columns.chunks, pairs.first_group + g, plan.k);
      const int64_t at = a_order.first[j] + chunks.begin;
      for (int64_t r = 0; r < pairs.tiles; ++r, ++next) {
        next->w = weights + r * records + w_order.first[j];
        next->a = a.records + at;
        next->sums = a.sums + at;
        next->count = BlocksOfClass(records, j);
        SetSums(plan, pass, position, r, g, room->sums, next);
      }
    }
  }
  Segment<kTraits>* const end = next;
  for (int i = 0; i < RecordStream<kTraits>::kBehind; ++i, ++next) {
    *next = room->segments[0];
    next->count = 1;
  }
  RecordStream<kTraits>::Run(room->segments, end, room->ring);
}

// A pass's records of some row tiles.
template <FormatTraits kTraits>
void Expand(const Plan<kTraits>& plan, int64_t pass, ExpandFunction expand,
            const WeightRows& weights, const Pairs& pairs, int64_t end, Room<kTraits>* room) {
  const Range chunks = plan.ChunksOf(pass);
  for (int64_t r = 0; r < pairs.tiles; ++r) {
    auto* records = reinterpret_cast<WeightRecord<kTraits>*>(room->weights);
    expand(weights, pairs.first_tile_row + r * kTileRows, end, chunks,
           records + r * plan.RecordsOf(chunks));
  }
}

void FinishPairs(const WeightRows& weights, const Pairs& pairs, const RecordColumns& columns,
                 Range rows, RecordSums* sums) {
  for (int64_t g = 0; g < pairs.groups; ++g) {
    const int64_t first = (pairs.first_group + g) * kTileColumns;
    for (int64_t c = 0; c < kTileColumns && first + c < columns.count; ++c) {
      auto* y = reinterpret_cast<float*>(columns.y + (first + c) * columns.y_stride);
      for (int64_t r = 0; r < pairs.tiles; ++r) {
        const TileFloats dots = Load<kTileRows>((*WaitingSums(sums, r, g))[c]);
        FinishRows(dots, weights.bias, pairs.first_tile_row + r * kTileRows, rows, y);
      }
    }
  }
}

int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

template <FormatTraits kTraits>
void Multiply(const WeightRows& weights, ExpandFunction expand, const RecordColumns& columns,
              Range rows) {
  const Plan<kTraits> plan(weights.k);
  Room<kTraits> room;
  // Groups of packed rows begin at multiples of a tile's.
  const int64_t first_row = weights.packed ? rows.begin / kTileRows * kTileRows : rows.begin;
  const int64_t tiles = (rows.end - first_row + kTileRows - 1) / kTileRows;
  const int64_t groups = (columns.count + kTileColumns - 1) / kTileColumns;
  ConfigureTiles(RecordStream<kTraits>::kValues);
  for (int64_t block = 0; block < groups; block += plan.block_groups) {
    const int64_t block_end = Least(groups, block + plan.block_groups);
    for (int64_t tile = 0; tile < tiles; tile += plan.tiles) {
      Pairs pairs = {first_row + tile * kTileRows, Least(plan.tiles, tiles - tile), block, 0};
      if (plan.passes == 1) Expand(plan, 0, expand, weights, pairs, rows.end, &room);
      for (int64_t group = block; group < block_end; group += kMostGroups) {
        pairs.first_group = group;
        pairs.groups = Least(kMostGroups, block_end - group);
        for (int64_t pass = 0; pass < plan.passes; ++pass) {
          if (plan.passes > 1) Expand(plan, pass, expand, weights, pairs, rows.end, &room);
          MultiplyPairs(plan, pass, pairs, columns, &room);
        }
        FinishPairs(weights, pairs, columns, rows, room.sums);
      }
    }
  }
  ReleaseTiles();
}

}  // namespace

void MultiplyRecords(const WeightRows& weights, const RecordColumns& columns, Range rows) {
  if (rows.begin >= rows.end) return;
  const Expansion expansion = ExpansionOf(weights);
  const auto as = [&]<Scales kScales, Minimums kMinimums>() {
    Multiply<FormatTraits{.scales = kScales, .minimums = kMinimums}>(weights, expansion.expand,
                                                                     columns, rows);
  };
  const bool has_minimums = expansion.traits.minimums != Minimums::kNone;
  switch (expansion.traits.scales) {
    case Scales::kNone:
      return has_minimums ? as.operator()<Scales::kNone, Minimums::kAdded>()
                          : as.operator()<Scales::kNone, Minimums::kNone>();
    case Scales::kBlock:
      return has_minimums ? as.operator()<Scales::kBlock, Minimums::kBlock>()
                          : as.operator()<Scales::kBlock, Minimums::kNone>();
    case Scales::kHalf:
      return has_minimums ? as.operator()<Scales::kHalf, Minimums::kHalf>()
                          : as.operator()<Scales::kHalf, Minimums::kNone>();
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_HAS_AMX
