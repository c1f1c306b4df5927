#include <cstddef>
#include <cstdint>

#include "kernels/cpu/product/dot_columns.h"
#include "kernels/cpu/product/finish.h"
#include "kernels/cpu/simd/amx.h"

#if TRINE_HAS_AMX

#include "kernels/cpu/product/record_stream.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

static_assert(kTileColumns == kInterleavedRows);

// The most row tiles, and the most column groups, that are multiplied at a time. All of them take
// some records of a class before the next records, so these records stay in a first-level cache.
constexpr int kMostTiles = 4;
constexpr int kMostGroups = 4;
// The least records of each class at a time.
constexpr int64_t kLeastRecords = 4;
// The room for expanded weights. With sums and products it is less than a kernel's stack may be.
constexpr int64_t kWeightBytes = 171 << 10;

// The most sums of a pair of row tile and column group that wait to be joined.
constexpr int kWaiting = 3;

// The passes over rows of k values. There is one pass if the records of at least one row tile fit
// on the stack. Else there are several passes of some chunks each, for one row tile at a time; the
// sums of all classes are kept between them.
template <FormatTraits kTraits>
struct Plan {
  int64_t k, chunks, records;
  int64_t tiles = kMostTiles;
  int64_t passes = 1;
  // The most records of a class that are read at a time: half of a first-level cache. The other
  // half is for the sums of each pair, the products, and loads that are under way.
  int64_t segment_records;
  // The column groups that are multiplied with expanded weights before the next weights are
  // expanded. They take three quarters of a second-level cache; of 2 MB, these are 512 columns of
  // 2,048 values. (This is an estimate: half of the cache was equally fast with rows of 896 and
  // 4,864 values.)
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

  // Returns the chunks of a pass. Passes differ by one chunk at most, so none is empty.
  Range ChunksOf(int64_t pass) const {
    return {chunks * pass / passes, chunks * (pass + 1) / passes};
  }
  // Returns the number of records of some chunks.
  int64_t RecordsOf(Range range) const {
    const int64_t end = range.end * quant::kSuperGroups;
    return (end < records ? end : records) - range.begin * quant::kSuperGroups;
  }
};

// The sums of a pair of row tile and column group.
struct PairSums {
  RecordSums waiting[kWaiting];
};

// The memory of a product, on the stack.
template <FormatTraits kTraits>
struct alignas(4096) Room {
  typename RecordStream<kTraits>::Ring ring;
  // The sums of the current class, between its segments.
  RecordSums unfinished[kMostTiles][kMostGroups];
  union {
    PairSums pairs[kMostTiles][kMostGroups];
    // With several passes there is one row tile. The sums of all classes are kept after its
    // records.
    struct {
      PairSums first_tile[kMostGroups];
      RecordSums classes[kMostGroups][quant::kSuperGroups];
    } passes;
  } sums;
  alignas(64) std::byte weights[kWeightBytes];
  // The segments to run. A class of a row has one segment if it has at most Plan::segment_records
  // records, else several.
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

// Sets which sums the class at `position` is joined with, and where the result goes. Sums are
// joined in pairs, like the carries of a binary counter. The number of sums that wait is the number
// of one bits in `position`, and the class is joined with one of them for each trailing one bit.
template <FormatTraits kTraits>
void FinishClass(int position, PairSums* pair, Segment<kTraits>* segment) {
  const int waiting = __builtin_popcount(static_cast<unsigned>(position));
  const int joins = __builtin_ctz(~static_cast<unsigned>(position));
  segment->joins = joins;
  segment->join = joins == 0 ? nullptr : pair->waiting + waiting - 1;
  segment->to = pair->waiting + waiting - joins;
}

// Computes a pass's products of some pairs. Its weights lie in room->weights.
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

// Expands a pass's records of some row tiles into room->weights.
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
  // Counts the bytes that the alignment takes, and leaves some for frames.
  static_assert(sizeof(Room<kTraits>) + alignof(Room<kTraits>) < 254 << 10);
  const Plan<kTraits> plan(weights.k, caches);
  Room<kTraits> room;
  // Groups of packed rows begin at multiples of kTileRows.
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
