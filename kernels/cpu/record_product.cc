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

// So many row tiles meet so many column groups at a time, some records of a class of all of them
// before the next ones: what they read of these stays in a first-level cache.
constexpr int kMostTiles = 4;
constexpr int kMostGroups = 4;
// Of each class at a time, at the least.
constexpr int64_t kLeastRecords = 4;
// Expanded weights, and with the rest (sums and products) less than a kernel's stack may be.
constexpr int64_t kWeightBytes = 171 << 10;

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
  // Records of a class that are read at a time, at most: half of a first-level cache. As much again
  // is left to the sums of each pair, the products and what is on its way.
  int64_t segment_records;
  // Column groups that expanded weights meet before the next are expanded: three quarters of a
  // second-level cache, which of 2 MB are 512 columns of 2,048 values. (Reckoned: no difference to
  // half of it was measured with rows of 896 and 4,864.)
  int64_t block_groups;

  Plan(int64_t k, const Caches& caches)
      : k(k), chunks(ActivationChunks(k)), records(RecordCount(k)) {
    constexpr int64_t kRecordBytes = sizeof(WeightRecord<kTraits>);
    constexpr bool kMinimums = kTraits.minimums != Minimums::kNone;
    while (tiles > 1 && tiles * records * kRecordBytes > kWeightBytes) tiles /= 2;
    if (records * kRecordBytes > kWeightBytes) {
      constexpr int64_t kChunks = kWeightBytes / (quant::kSuperGroups * kRecordBytes);
      passes = (chunks + kChunks - 1) / kChunks;
    }
    const int64_t read =
        kMinimums ? sizeof(ActivationRecord) + sizeof(ActivationSums) : sizeof(ActivationRecord);
    segment_records = caches.first_level / 2 / (tiles * kRecordBytes + kMostGroups * read);
    if (segment_records < kLeastRecords) segment_records = kLeastRecords;
    block_groups = caches.second_level / 4 * 3 / (records * read) / kMostGroups * kMostGroups;
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

// The sums of a pair of row tile and column group.
struct PairSums {
  RecordSums waiting[kWaiting];
};

// On the stack.
template <FormatTraits kTraits>
struct alignas(4096) Room {
  typename RecordStream<kTraits>::Ring ring;
  // Of the class that is being summed, between its segments.
  RecordSums unfinished[kMostTiles][kMostGroups];
  union {
    PairSums pairs[kMostTiles][kMostGroups];
    // With several passes there is one row tile. The sums of all classes are kept behind its own.
    struct {
      PairSums first_tile[kMostGroups];
      RecordSums classes[kMostGroups][quant::kSuperGroups];
    } passes;
  } sums;
  alignas(64) std::byte weights[kWeightBytes];
  // Those of rows of up to Plan::segment_records to a class are run in one go, more in several.
  Segment<kTraits>
      segments[kMostTiles * kMostGroups * quant::kSuperGroups + RecordStream<kTraits>::kBehind];

  static_assert(sizeof(sums.passes.first_tile) == sizeof(sums.pairs[0]));
};

// Some row tiles and some column groups.
struct Pairs {
  int64_t first_tile_row;  // the first row of the first tile
  int64_t tiles;
  int64_t first_group, groups;
};

// Segments that wait to be run, one after the other.
template <FormatTraits kTraits>
class SegmentList {
 public:
  explicit SegmentList(Room<kTraits>* room) : room_(room) {}

  void Add(const Segment<kTraits>& segment) {
    if (count_ == kMost) Run();
    room_->segments[count_++] = segment;
  }

  void Run() {
    if (count_ == 0) return;
    Segment<kTraits>* const end = room_->segments + count_;
    for (int i = 0; i < RecordStream<kTraits>::kBehind; ++i) {
      end[i] = room_->segments[0];
      end[i].count = 1;
    }
    RecordStream<kTraits>::Run(room_->segments, end, room_->ring);
    count_ = 0;
  }

 private:
  static constexpr int64_t kMost =
      int64_t{sizeof(Room<kTraits>::segments) / sizeof(Segment<kTraits>)} -
      RecordStream<kTraits>::kBehind;
  Room<kTraits>* room_;
  int64_t count_ = 0;
};

// What the sums of the class at `position` are joined with when they are there, and where they go
// then. Of the classes before it, as many sums wait as the position has ones in binary; it is
// joined with as many as it ends with.
template <FormatTraits kTraits>
void FinishClass(int position, PairSums* pair, Segment<kTraits>* segment) {
  const int waiting = __builtin_popcount(static_cast<unsigned>(position));
  const int joins = __builtin_ctz(~static_cast<unsigned>(position));
  segment->joins = joins;
  segment->join = joins == 0 ? nullptr : pair->waiting + waiting - 1;
  segment->to = pair->waiting + waiting - joins;
}

// A pass's products of some pairs; its weights lie in room->weights.
template <FormatTraits kTraits>
void MultiplyPairs(const Plan<kTraits>& plan, int64_t pass, const Pairs& pairs,
                   const RecordColumns& columns, Room<kTraits>* room) {
  const Range chunks = plan.ChunksOf(pass);
  const int64_t records = plan.RecordsOf(chunks);
  const RecordOrder w_order = OrderOfRecords(records), a_order = OrderOfRecords(plan.records);
  const auto* weights = reinterpret_cast<const WeightRecord<kTraits>*>(room->weights);
  SegmentList<kTraits> list(room);
  for (int position = 0; position < quant::kSuperGroups; ++position) {
    const int j = kClassOrder[position];
    const int64_t count = BlocksOfClass(records, j);
    const int64_t parts = (count + plan.segment_records - 1) / plan.segment_records;
    for (int64_t part = 0; part < parts; ++part) {
      const Range range = {count * part / parts, count * (part + 1) / parts};
      for (int64_t g = 0; g < pairs.groups; ++g) {
        const auto a = RecordsOfGroup(columns.chunks, pairs.first_group + g, plan.k);
        const int64_t at = a_order.first[j] + chunks.begin + range.begin;
        for (int64_t r = 0; r < pairs.tiles; ++r) {
          Segment<kTraits> segment = {};
          segment.w = weights + r * records + w_order.first[j] + range.begin;
          segment.a = a.records + at;
          segment.sums = a.sums + at;
          segment.count = range.end - range.begin;
          RecordSums* unfinished =
              plan.passes == 1 ? &room->unfinished[r][g] : &room->sums.passes.classes[g][position];
          segment.start = pass == 0 && part == 0 ? nullptr : unfinished;
          segment.to = unfinished;
          if (pass + 1 == plan.passes && part + 1 == parts) {
            FinishClass(position, &room->sums.pairs[r][g], &segment);
          }
          list.Add(segment);
        }
      }
    }
  }
  list.Run();
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

template <FormatTraits kTraits>
void FinishPairs(const WeightRows& weights, const Pairs& pairs, const RecordColumns& columns,
                 Range rows, const Room<kTraits>& room) {
  for (int64_t g = 0; g < pairs.groups; ++g) {
    const int64_t first = (pairs.first_group + g) * kTileColumns;
    for (int64_t c = 0; c < kTileColumns && first + c < columns.count; ++c) {
      auto* y = reinterpret_cast<float*>(columns.y + (first + c) * columns.y_stride);
      for (int64_t r = 0; r < pairs.tiles; ++r) {
        const TileFloats dots = Load<kTileRows>(room.sums.pairs[r][g].waiting[0][c]);
        FinishRows(dots, weights.bias, pairs.first_tile_row + r * kTileRows, rows, y);
      }
    }
  }
}

int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

template <FormatTraits kTraits>
void Multiply(const WeightRows& weights, ExpandFunction expand, const RecordColumns& columns,
              Range rows, const Caches& caches) {
  // With what its alignment takes, and something for frames.
  static_assert(sizeof(Room<kTraits>) + alignof(Room<kTraits>) < 254 << 10);
  const Plan<kTraits> plan(weights.k, caches);
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
        FinishPairs(weights, pairs, columns, rows, room);
      }
    }
  }
  ReleaseTiles();
}

}  // namespace

void MultiplyRecords(const WeightRows& weights, const RecordColumns& columns, Range rows,
                     const Caches& caches) {
  if (rows.begin >= rows.end) return;
  const Expansion expansion = ExpansionOf(weights);
  const auto as = [&]<Scales kScales, Minimums kMinimums>() {
    Multiply<FormatTraits{.scales = kScales, .minimums = kMinimums}>(weights, expansion.expand,
                                                                     columns, rows, caches);
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
