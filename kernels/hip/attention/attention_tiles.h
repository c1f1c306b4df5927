// Attention of many tokens: a block takes a tile of 32 rows (tokens times the heads of a group) and
// goes through the chunks with all of them, as a product of matrices would.
//
// Scores: a thread has 4 rows times 4 positions of half a chunk. It can't keep 32 class sums for
// each of these 16 scores. So it takes the classes in the order in which the contract's tree needs
// them, depth first; then at most five partial sums wait. The upper levels of that tree divide
// classes by their low bits. So shared memory holds a slice at a time: 32 elements whose numbers
// have the same low bits.
//
// Values: a thread has 4 rows times 4 columns, and takes the classes of positions in turn.
#pragma once

#include "kernels/hip/attention/attention_args.h"
#include "kernels/hip/attention/cache_reader.h"
#include "kernels/hip/gpu/launch.h"

namespace trine::hip {

inline constexpr uint32_t kTileThreads = 256;
inline constexpr uint32_t kTileRows = 32;
inline constexpr uint32_t kMaxTileWidth = 256;  // the most elements of a row of k

inline constexpr int32_t kHalfChunk = kChunk / 2;
inline constexpr uint32_t kSliceElements = 32;
// Strides in shared memory. They are whole vectors, and put eight neighbouring lanes into different
// banks.
inline constexpr uint32_t kKeyStride = kHalfChunk + 4;
inline constexpr uint32_t kRowStride = kTileRows + 4;

struct TileShared {
  // Scores, later probabilities, [kChunk][kRowStride]. A slice of the keys and of q lies in the
  // memory of the second half's probabilities, and in the memory after them.
  alignas(16) float work[kHalfChunk * kRowStride + kSliceElements * (kKeyStride + kRowStride)];
  int64_t k_row[kChunk], v_row[kChunk];
  float most[4][kTileRows];  // by quarter of the positions
  // For each row: the positions that it sees in all chunks. `empty`: it sees none of the chunks
  // that were joined so far.
  int32_t sequence[kTileRows], begin[kTileRows], end[kTileRows];
  Joined joined[kTileRows];
  JoinWeights weights[kTileRows];
  bool empty[kTileRows];
  bool first[kTileRows];  // this chunk is the row's first
};

TRINE_DEVICE constexpr uint32_t ReversedBits(uint32_t value, uint32_t count) {
  uint32_t reversed = 0;
  for (uint32_t i = 1; i < count; i *= 2) {
    reversed = 2 * reversed + (value & 1);
    value /= 2;
  }
  return reversed;
}

struct Tile4x4 {
  float at[4][4];

  TRINE_DEVICE void AddTo(const Tile4x4& left) {
    TRINE_UNROLL
    for (int i = 0; i < 4; ++i) {
      TRINE_UNROLL
      for (int j = 0; j < 4; ++j) at[i][j] = left.at[i][j] + at[i][j];
    }
  }
};

// true: each number of groups has its own kernel. For AMD and the emulator, one kernel serves all
// numbers: computing scores is a small part of it, and compiling takes long.
#if defined(TRINE_GPU_NVIDIA)
inline constexpr bool kGroupsApart = true;
#else
inline constexpr bool kGroupsApart = false;
#endif

// Runs one block of threads. kGroups: the number of groups of 32 elements in a row of k: 2, 4 or 8;
// 0: found from the width when the kernel runs.
template <CacheForm kForm, uint32_t kGroups>
class TileBlock {
 public:
  TRINE_DEVICE TileBlock(const AttentionArgs& args, TileShared* shared)
      : args_(args), shared_(shared) {
    const uint32_t kv_heads = args.heads / args.group;
    kv_head_ = BlockX() % kv_heads;
    // The last tokens see the most, so they begin first.
    first_row_ = (args.parts - 1 - BlockX() / kv_heads) * kTileRows;
    lane_ = ThreadX() % kLanes;
    warp_ = ThreadX() / kLanes;
  }

  TRINE_DEVICE void Run() {
    FindTileRows();
    SyncBlock();
    for (uint32_t row = 0; row < kTileRows;) {
      const int32_t sequence = shared_->sequence[row];
      uint32_t next = row + 1;
      while (next < kTileRows && shared_->sequence[next] == sequence) ++next;
      if (sequence >= 0) RunSequence(sequence, row, next);
      row = next;
    }
    if (!args_.split) PutRows();
  }

 private:
  TRINE_DEVICE uint32_t TokenOf(uint32_t row) const { return (first_row_ + row) / args_.group; }
  TRINE_DEVICE uint32_t HeadOf(uint32_t row) const {
    return kv_head_ * args_.group + (first_row_ + row) % args_.group;
  }
  TRINE_DEVICE bool IsRow(uint32_t row) const { return TokenOf(row) < args_.tokens; }

  TRINE_DEVICE void FindTileRows() {
    for (uint32_t row = 4 * warp_; row < 4 * warp_ + 4; ++row) {
      Seen seen;
      if (IsRow(row)) seen = SeenBy(args_, static_cast<int32_t>(TokenOf(row)));
      if (lane_ != 0) continue;
      shared_->sequence[row] = seen.nothing() ? -1 : seen.sequence;
      shared_->begin[row] = seen.begin;
      shared_->end[row] = seen.end;
      shared_->empty[row] = true;
    }
  }

  // Runs rows [from, to), which all belong to one sequence.
  TRINE_DEVICE void RunSequence(int32_t sequence, uint32_t from, uint32_t to) {
    from_ = from;
    to_ = to;
    int32_t begin = shared_->begin[from], end = shared_->end[from];
    for (uint32_t row = from + 1; row < to; ++row) {
      begin = shared_->begin[row] < begin ? shared_->begin[row] : begin;
      end = shared_->end[row] > end ? shared_->end[row] : end;
    }
    const int32_t first = begin / kChunk, last = (end - 1) / kChunk;
    if (args_.split && static_cast<int32_t>(BlockY()) > last - first) return;
    const int32_t start = args_.split ? first + static_cast<int32_t>(BlockY()) : first;
    const int32_t stop = args_.split ? start : last;
    for (int32_t chunk = start; chunk <= stop; ++chunk) {
      range_ = ChunkOf(chunk, begin, end);
      FindRows(args_, sequence, kv_head_, range_, shared_);
      SyncBlock();
      Probabilities();
      SyncBlock();
      JoinSums();
      SyncBlock();
      if (args_.v.width <= 64) {
        Values<2>();
      } else {
        Values<1>();
      }
      SyncBlock();
    }
  }

  // The positions [begin, end) of the chunk that a row sees.
  struct RowRange {
    int32_t begin, end;

    TRINE_DEVICE bool has(int32_t t) const { return t >= begin && t < end; }
    TRINE_DEVICE bool any() const { return begin < end; }
  };
  TRINE_DEVICE RowRange RangeOf(uint32_t row) const {
    if (row < from_ || row >= to_) return {0, 0};
    const ChunkRange range = ChunkOf(range_.first / kChunk, shared_->begin[row], shared_->end[row]);
    return {range.begin, range.end};
  }

  TRINE_DEVICE float* ProbabilityAt(int32_t t, uint32_t row) {
    return shared_->work + static_cast<uint32_t>(t) * kRowStride + row;
  }

  // ---- Scores and probabilities --------------------------------------------------------------

  TRINE_DEVICE float* Keys() { return shared_->work + kHalfChunk * kRowStride; }
  TRINE_DEVICE float* Queries() { return Keys() + kSliceElements * kKeyStride; }

  // Loads a slice of the keys and of q. A row has one slice for each group, so a slice has 32
  // elements of 32 / kSlices classes. Element k of a slice is element k * kSlices + slice of a row.
  // The 32 lanes load eight elements of four rows: whole sectors of memory, and all banks of shared
  // memory.
  template <uint32_t kSlices>
  TRINE_DEVICE void FillSlice(uint32_t slice, int32_t half) {
    const uint32_t thread = ComputedHere(ThreadX()), lane = thread % kLanes, warp = thread / kLanes;
    TRINE_UNROLL
    for (uint32_t i = 0; i < kSliceElements / 8; ++i) {
      const uint32_t k = 8 * i + lane % 8, element = k * kSlices + slice;
      TRINE_UNROLL
      for (uint32_t j = 0; j < kHalfChunk / 32; ++j) {
        const uint32_t t = 32 * j + 4 * warp + lane / 8;
        const std::byte* row = args_.k.data + shared_->k_row[half * kHalfChunk + t];
        Keys()[k * kKeyStride + t] = Load1<kForm>(args_.k, row, element);
      }
      const uint32_t row = 4 * warp + lane / 8;
      const bool there = IsRow(row) && element < args_.k.width;
      Queries()[k * kRowStride + row] =
          there ? QueryRow(args_, HeadOf(row), TokenOf(row))[element] : 0.0f;
    }
  }

  // Adds the products of element k with the thread's rows and positions.
  TRINE_DEVICE void AddElement(uint32_t k, bool first, uint32_t row, uint32_t t, Tile4x4* sums) {
    const Float4 query = *reinterpret_cast<const Float4*>(Queries() + k * kRowStride + row);
    const Float4 key = *reinterpret_cast<const Float4*>(Keys() + k * kKeyStride + t);
    const float q[4] = {query.x, query.y, query.z, query.w};
    const float v[4] = {key.x, key.y, key.z, key.w};
    TRINE_UNROLL
    for (int i = 0; i < 4; ++i) {
      TRINE_UNROLL
      for (int j = 0; j < 4; ++j) {
        const float term = q[i] * v[j];
        sums->at[i][j] = first ? term : sums->at[i][j] + term;
      }
    }
  }

  // Adds up classes slice + kSlices * c, for c = first, first + kStep, .., as a tree: first the
  // classes in which the next bit of c is clear, then those in which it is set. Does not add a
  // class's first term to zero: a sum can be -0 instead of +0, which no score shows.
  template <uint32_t kSlices, uint32_t kStep>
  TRINE_DEVICE void SumClasses(uint32_t first, uint32_t row, uint32_t t, Tile4x4* sums) {
    constexpr uint32_t kClasses = 32 / kSlices;
    if constexpr (kStep == kClasses) {
      TRINE_UNROLL
      for (uint32_t g = 0; g < kSlices; ++g) {
        AddElement(g * kClasses + first, g == 0, row, t, sums);
        if (g % 2 == 1) KeepLoadsBehind();
      }
    } else if constexpr (kStep < 4) {
      Tile4x4 left = {};
      TRINE_UNROLL_MORE
      for (uint32_t upper = 0; upper < 2; ++upper) {
        left = *sums;
        SumClasses<kSlices, 2 * kStep>(first + upper * kStep, row, t, sums);
      }
      sums->AddTo(left);
    } else {
      Tile4x4 left;
      SumClasses<kSlices, 2 * kStep>(first, row, t, &left);
      SumClasses<kSlices, 2 * kStep>(first + kStep, row, t, sums);
      sums->AddTo(left);
    }
  }

  // Computes the dot products of 4 rows with 4 positions of half a chunk. Slices come in the order
  // of the tree, and so do the classes in them. The bits of a counter tell which partial sums to
  // join.
  template <uint32_t kSlices>
  TRINE_DEVICE void Dots(int32_t half, uint32_t row, uint32_t t, Tile4x4* sums) {
    row = ComputedHere(row);
    t = ComputedHere(t);
    Tile4x4 waiting[3] = {};
    for (uint32_t n = 0; n < kSlices; ++n) {
      FillSlice<kSlices>(ReversedBits(n, kSlices), half);
      SyncBlock();
      SumClasses<kSlices, 1>(0, row, t, sums);
      SyncBlock();
      // Written out, because an array with a computed index lies in memory.
      if ((n & 1) == 0) {
        waiting[0] = *sums;
        continue;
      }
      sums->AddTo(waiting[0]);
      if constexpr (kSlices > 2) {
        if ((n & 2) == 0) {
          waiting[1] = *sums;
          continue;
        }
        sums->AddTo(waiting[1]);
      }
      if constexpr (kSlices > 4) {
        if ((n & 4) == 0) {
          waiting[2] = *sums;
          continue;
        }
        sums->AddTo(waiting[2]);
      }
    }
  }

  TRINE_DEVICE void Scores(int32_t half, uint32_t row, uint32_t t, Tile4x4* sums) {
    if constexpr (kGroups != 0) {
      Dots<kGroups>(half, row, t, sums);
    } else if (args_.k.width <= 64) {
      Dots<2>(half, row, t, sums);
    } else if (args_.k.width <= 128) {
      Dots<4>(half, row, t, sums);
    } else {
      Dots<8>(half, row, t, sums);
    }
    TRINE_UNROLL
    for (int i = 0; i < 4; ++i) {
      TRINE_UNROLL
      for (int j = 0; j < 4; ++j) sums->at[i][j] = ScoreOf(args_, sums->at[i][j]);
    }
  }

  TRINE_DEVICE void PutTile(const Tile4x4& tile, int32_t t, uint32_t row) {
    TRINE_UNROLL
    for (int32_t j = 0; j < 4; ++j) {
      *reinterpret_cast<Float4*>(ProbabilityAt(t + j, row)) = {tile.at[0][j], tile.at[1][j],
                                                               tile.at[2][j], tile.at[3][j]};
    }
  }

  TRINE_DEVICE Tile4x4 GetTile(int32_t t, uint32_t row) {
    Tile4x4 tile;
    TRINE_UNROLL
    for (int32_t j = 0; j < 4; ++j) {
      const Float4 scores = *reinterpret_cast<const Float4*>(ProbabilityAt(t + j, row));
      tile.at[0][j] = scores.x;
      tile.at[1][j] = scores.y;
      tile.at[2][j] = scores.z;
      tile.at[3][j] = scores.w;
    }
    return tile;
  }

  TRINE_DEVICE void LargestOf(const Tile4x4& tile, int32_t t, uint32_t row, float (&most)[4]) {
    TRINE_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      const RowRange range = RangeOf(row + i);
      TRINE_UNROLL
      for (int32_t j = 0; j < 4; ++j) {
        if (range.has(t + j)) most[i] = Larger(most[i], tile.at[i][j]);
      }
    }
  }

  TRINE_DEVICE void Exponentials(const float (&m)[4], int32_t t, uint32_t row, Tile4x4* tile) {
    TRINE_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      const RowRange range = RangeOf(row + i);
      TRINE_UNROLL
      for (int32_t j = 0; j < 4; ++j) {
        tile->at[i][j] = range.has(t + j) ? Exp(tile->at[i][j] - m[i]) : 0.0f;
      }
    }
  }

  // Computes the chunk's scores and turns them into probabilities. The first half's scores wait in
  // shared memory, the second half's in registers, because slices use the memory of the second
  // half's probabilities.
  TRINE_DEVICE void Probabilities() {
    const uint32_t row = ComputedHere(16 * (warp_ % 2) + 4 * (lane_ / 8));
    const uint32_t quarter = warp_ / 2, t = 32 * quarter + 4 * (lane_ % 8);
    const auto first = static_cast<int32_t>(t);
    float most[4] = {-quant::kHuge, -quant::kHuge, -quant::kHuge, -quant::kHuge};
    Tile4x4 tile = {};
    TRINE_UNROLL_MORE
    for (int32_t half = 0; half < 2; ++half) {
      const int32_t begin = half * kHalfChunk;
      if (range_.begin < begin + kHalfChunk && range_.end > begin) {
        Scores(half, row, t, &tile);
        LargestOf(tile, first + begin, row, most);
      }
      if (half == 0) PutTile(tile, first, row);
    }
    TRINE_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      TRINE_UNROLL
      for (int mask = 1; mask < 8; mask *= 2) most[i] = Larger(most[i], LaneXor(most[i], mask));
      if (lane_ % 8 == i) shared_->most[quarter][row + i] = most[i];
    }
    SyncBlock();
    TRINE_UNROLL
    for (uint32_t i = 0; i < 4; ++i) most[i] = Most(row + i);
    TRINE_UNROLL_MORE
    for (int32_t half = 1; half >= 0; --half) {
      const int32_t at = first + half * kHalfChunk;
      if (half == 0) tile = GetTile(at, row);
      Exponentials(most, at, row, &tile);
      PutTile(tile, at, row);
    }
  }

  TRINE_DEVICE float Most(uint32_t row) const {
    return Larger(Larger(shared_->most[0][row], shared_->most[1][row]),
                  Larger(shared_->most[2][row], shared_->most[3][row]));
  }

  // ---- Sums ----------------------------------------------------------------------------------

  // Adds up the probabilities of four rows, with a lane for each of the 32 classes, and joins them
  // to the rows' sums.
  TRINE_DEVICE void JoinSums() {
    const uint32_t first = ComputedHere(4 * warp_);
    float l[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    TRINE_UNROLL
    for (uint32_t k = 0; k < kChunk / kLanes; ++k) {
      const auto t = static_cast<int32_t>(k * kLanes + lane_);
      const Float4 p = *reinterpret_cast<const Float4*>(ProbabilityAt(t, first));
      l[0] = l[0] + p.x;
      l[1] = l[1] + p.y;
      l[2] = l[2] + p.z;
      l[3] = l[3] + p.w;
    }
    float mine = 0.0f;  // the sum of row `first + lane_`, in the first four lanes
    TRINE_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      TRINE_UNROLL
      for (int mask = 16; mask > 0; mask /= 2) l[i] = l[i] + LaneXor(l[i], mask);
      mine = lane_ == i ? l[i] : mine;
    }
    if (lane_ < 4) JoinRow(first + lane_, mine);
  }

  TRINE_DEVICE void JoinRow(uint32_t row, float l) {
    if (!RangeOf(row).any()) return;
    const float m = Most(row);
    shared_->first[row] = shared_->empty[row];
    if (shared_->empty[row]) {
      shared_->joined[row] = {m, l};
      shared_->empty[row] = false;
    } else {
      shared_->weights[row] = Join(m, l, &shared_->joined[row]);
    }
  }

  // ---- Values --------------------------------------------------------------------------------

  // Adds up the chunk's values: 32 lanes have four rows. If there are few columns (kHalves is 2),
  // each half of the lanes takes two classes of positions: 0 and 2, or 1 and 3.
  template <uint32_t kHalves>
  TRINE_DEVICE void Values() {
    constexpr uint32_t kAcross = kLanes / kHalves;
    const uint32_t row = ComputedHere(4 * warp_), lane = ComputedHere(lane_), half = lane / kAcross;
    RowRange seen = {kChunk, 0};  // by any of the rows
    for (uint32_t i = 0; i < 4; ++i) {
      const RowRange range = RangeOf(row + i);
      if (!range.any()) continue;
      seen.begin = range.begin < seen.begin ? range.begin : seen.begin;
      seen.end = range.end > seen.end ? range.end : seen.end;
    }
    if (!seen.any()) return;  // all 32 lanes
    for (uint32_t base = 0; base < args_.v.width; base += 4 * kAcross) {
      const uint32_t column = base + 4 * (lane % kAcross);
      Tile4x4 sums = {};
      if constexpr (kHalves == 2) {
        SumPair(seen, row, column, static_cast<int32_t>(half), &sums);
        for (auto& values : sums.at) {
          for (float& value : values) value = value + LaneXor(value, 16);
        }
      } else {
        Tile4x4 even = {};
        TRINE_UNROLL_MORE
        for (int32_t c = 0; c < 2; ++c) {
          even = sums;
          SumPair(seen, row, column, c, &sums);
        }
        sums.AddTo(even);
      }
      if (half != 0) continue;
      TRINE_UNROLL
      for (uint32_t i = 0; i < 4; ++i) {
        if (RangeOf(row + i).any()) PutValues(row + i, column, sums.at[i]);
      }
    }
  }

  // Adds up classes c and c + 2 of positions, and joins them.
  TRINE_DEVICE void SumPair(const RowRange& seen, uint32_t row, uint32_t column, int32_t c,
                            Tile4x4* sums) {
    constexpr int32_t kAtOnce = 2;
    Tile4x4 low = {}, high = {};
    for (int32_t base = seen.begin & ~7; base < seen.end; base += 4 * kAtOnce) {
      float v[2 * kAtOnce][4];
      TRINE_UNROLL
      for (int32_t k = 0; k < 2 * kAtOnce; ++k) {
        const std::byte* at = args_.v.data + shared_->v_row[base + 2 * k + c];
        Load4<kForm>(args_.v, at, column, v[k]);
      }
      TRINE_UNROLL
      for (int32_t k = 0; k < 2 * kAtOnce; k += 2) {
        AddValues(v[k], base + 2 * k + c, row, &low);
        AddValues(v[k + 1], base + 2 * k + 2 + c, row, &high);
      }
    }
    *sums = high;
    sums->AddTo(low);
  }

  TRINE_DEVICE void AddValues(const float (&v)[4], int32_t t, uint32_t row, Tile4x4* sums) {
    const Float4 four = *reinterpret_cast<const Float4*>(ProbabilityAt(t, row));
    const float p[4] = {four.x, four.y, four.z, four.w};
    TRINE_UNROLL
    for (int i = 0; i < 4; ++i) {
      TRINE_UNROLL
      for (int j = 0; j < 4; ++j) sums->at[i][j] = sums->at[i][j] + p[i] * v[j];
    }
  }

  // Joins a chunk's values to the earlier chunks' values, which lie in y. If chunks are split,
  // writes them to scratch. Each value is read and written by one thread.
  TRINE_DEVICE void PutValues(uint32_t row, uint32_t column, const float (&o)[4]) {
    float* to = OutputRow(args_, HeadOf(row), TokenOf(row)) + column;
    if (args_.split) {
      const int32_t chunk = (range_.first - shared_->begin[row] / kChunk * kChunk) / kChunk;
      const int64_t at =
          (static_cast<int64_t>(TokenOf(row)) * args_.heads + HeadOf(row)) * args_.chunks + chunk;
      to = args_.scratch_values + at * args_.padded_width + column;
      if (column == 0) {
        args_.scratch_sums[2 * at] = shared_->joined[row].m;
        args_.scratch_sums[2 * at + 1] = shared_->joined[row].l;
      }
    }
    const JoinWeights weights = shared_->weights[row];
    TRINE_UNROLL
    for (uint32_t j = 0; j < 4; ++j) {
      if (column + j >= args_.v.width) continue;
      to[j] = shared_->first[row] ? o[j] : JoinValue(to[j], o[j], weights);
    }
  }

  TRINE_DEVICE void PutRows() {
    // Divides columns as Values does, so that each thread reads its own values.
    const uint32_t across = args_.v.width <= 64 ? kLanes / 2 : kLanes;
    for (uint32_t row = 4 * warp_; row < 4 * warp_ + 4; ++row) {
      if (!IsRow(row)) continue;
      const uint32_t head = HeadOf(row), token = TokenOf(row);
      const bool empty = shared_->empty[row];
      Finish finish = {};
      if (!empty) finish = FinishOf(args_, head, shared_->joined[row]);
      for (uint32_t base = 0; base < args_.v.width; base += 4 * across) {
        const uint32_t column = base + 4 * (lane_ % across);
        const bool ours = lane_ < across && column < args_.v.width;
        float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (ours && !empty) {
          const float* from = OutputRow(args_, head, token) + column;
          for (uint32_t j = 0; j < 4; ++j) {
            if (column + j < args_.v.width) v[j] = finish(args_, from[j]);
          }
        }
        PutOutput(args_, head, token, column, v, ours);
      }
    }
  }

  const AttentionArgs& args_;
  TileShared* shared_;
  uint32_t kv_head_, first_row_, lane_, warp_;
  uint32_t from_ = 0, to_ = 0;  // rows of the current sequence
  ChunkRange range_ = {};       // the positions of the current chunk that any of them sees
};

template <CacheForm kForm, uint32_t kGroups>
TRINE_KERNEL_RESIDENT(kTileThreads, 2)
TileKernel(AttentionArgs args) {
  BeginAfterEarlier();
  TRINE_SHARED(TileShared, shared);
  TileBlock<kForm, kGroups>(args, &shared).Run();
}

template <CacheForm kForm, uint32_t kGroups>
Launch TileLaunchOf(const AttentionArgs& args, uint32_t chunk_blocks) {
  const uint32_t kv_heads = args.heads / args.group;
  return MakeLaunch(TileKernel<kForm, kGroups>, {args.parts * kv_heads, chunk_blocks},
                    {kTileThreads}, args);
}

template <CacheForm kForm>
Launch TileLaunchOf([[maybe_unused]] uint32_t groups, const AttentionArgs& args,
                    uint32_t chunk_blocks) {
  if constexpr (!kGroupsApart) {
    return TileLaunchOf<kForm, 0>(args, chunk_blocks);
  } else {
    if (groups == 2) return TileLaunchOf<kForm, 2>(args, chunk_blocks);
    if (groups == 4) return TileLaunchOf<kForm, 4>(args, chunk_blocks);
    return TileLaunchOf<kForm, 8>(args, chunk_blocks);
  }
}

}  // namespace trine::hip
