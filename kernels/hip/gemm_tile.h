// Quantised products with many columns: a tile of the result for each block of 256 threads.
//
// Blocks of weights and activations pass through two stages in shared memory, of 256 blocks of
// each: while one is multiplied, every thread loads a block of weights and one of activations for
// the other.
#ifndef TRINE_KERNELS_HIP_GEMM_TILE_H_
#define TRINE_KERNELS_HIP_GEMM_TILE_H_

#include <cstdint>

#include "kernels/hip/gemm_args.h"
#include "kernels/hip/gemm_kernels.h"
#include "kernels/hip/gemm_terms.h"
#include "kernels/hip/gemm_units.h"
#include "kernels/hip/gpu/async.h"
#include "kernels/hip/weight_tiles.h"

namespace trine::hip {

inline constexpr uint32_t kGemmThreads = 256;

// 128 rows and columns, two blocks deep, both of one class.
struct WideTile {
  static constexpr uint32_t kRows = kWideTile.rows, kColumns = kWideTile.columns;
  static constexpr uint32_t kDepth = 2, kPitch = kRows;
  static constexpr int kM = 4, kN = 4;  // of a group of lanes: 64 by 32
  // What thread t loads.
  TRINE_DEVICE static uint32_t Line(uint32_t t) { return t % kRows; }
  TRINE_DEVICE static uint32_t Depth(uint32_t t) { return t / kRows; }
};

// 32 rows and columns, eight blocks deep, one of each class. Neighbours load blocks that lie
// together, and the pitch puts these into different banks.
struct NarrowTile {
  static constexpr uint32_t kRows = kNarrowTile.rows, kColumns = kNarrowTile.columns;
  static constexpr uint32_t kDepth = 8, kPitch = kRows + 1;
  static constexpr int kM = 2, kN = 4;  // of a group of lanes: all of it
  TRINE_DEVICE static uint32_t Line(uint32_t t) { return t / kDepth; }
  TRINE_DEVICE static uint32_t Depth(uint32_t t) { return t % kDepth; }
};

template <Factors kFactors, class Tile>
struct GemmStage {
  static constexpr uint32_t kPlaces = Tile::kDepth * Tile::kPitch;
  Word4 w[2][kPlaces], x[2][kPlaces];  // by halves of blocks
  typename Terms<kFactors>::RowRecord rows[kPlaces];
  typename Terms<kFactors>::ColumnRecord columns[kPlaces];
};

template <Factors kFactors, class Tile>
struct GemmStages {
  GemmStage<kFactors, Tile> stage[2];
};

// A thread's part in filling stages.
template <class Form, class Tile>
class StageLoader {
 public:
  using T = Terms<Form::kFactors>;
  using Stage = GemmStage<Form::kFactors, Tile>;

  TRINE_DEVICE StageLoader(const GemmArgs& args, const TileColumns& tile, uint32_t first_row)
      : blocks_(static_cast<int>(args.k / 32)),
        place_(Tile::Depth(ThreadX()) * Tile::kPitch + Tile::Line(ThreadX())),
        row_(WeightRow(args, tile, first_row + Tile::Line(ThreadX()))) {
    const int64_t column =
        OffsetOf(args.q_stride, ColumnOf(tile, Tile::Line(ThreadX())), args.slots);
    values_ = reinterpret_cast<const Word4*>(args.q.values) + column * blocks_ * 2;
    scales_ = args.q.scales + column * blocks_;
    sums_ = args.q.sums + column * blocks_;
  }

  // Begins the loads of a block; those beyond the last are left out.
  TRINE_DEVICE void Begin(int block, Stage* stage) {
    block_ = block;
    if (block >= blocks_) return;
    CopyAsync(&stage->x[0][place_], values_ + 2 * block);
    CopyAsync(&stage->x[1][place_], values_ + 2 * block + 1);
    Form::Fetch(row_, blocks_, block, &raw_);
    scale_ = scales_[block];
    if constexpr (T::kMinimum) sum_ = sums_[block];
  }

  TRINE_DEVICE void End(Stage* stage) {
    if (block_ < blocks_) {
      WeightBlock block;
      Form::Decode(raw_, &block);
      stage->w[0][place_] = {block.q[0], block.q[1], block.q[2], block.q[3]};
      stage->w[1][place_] = {block.q[4], block.q[5], block.q[6], block.q[7]};
      stage->rows[place_] = T::Record(block);
      stage->columns[place_] = T::Record(scale_, sum_);
    }
    WaitForCopies();
  }

 private:
  int blocks_;
  uint32_t place_;
  const std::byte* row_;
  const Word4* values_;
  const float* scales_;
  const uint32_t* sums_;
  int block_ = 0;
  typename Form::Raw raw_{};
  float scale_ = 0.0f;
  uint32_t sum_ = 0;
};

template <class Unit>
TRINE_DEVICE void WriteResults(const GemmArgs& args, const TileColumns& tile, uint32_t row,
                               uint32_t column, uint32_t lane,
                               const float (&sums)[Unit::kResults]) {
  TRINE_UNROLL
  for (int i = 0; i < Unit::kResults; ++i) {
    const uint32_t r = row + Unit::Row(lane, i), c = column + Unit::Column(lane, i);
    if (r < args.n && c < tile.count) {
      ColumnOfY(args, tile, c)[r] = Finish(args, tile, r, sums[i]);
    }
  }
}

// Sums wait for the other side of their join on a stack: after turn t as many as t + 1 has bits,
// for the turns take the classes by their bits reversed: 0, 4, 2, 6, 1, 5, 3, 7.
TRINE_DEVICE int ClassOfTurn(int turn) { return (turn & 1) << 2 | (turn & 2) | turn >> 2; }

template <class Form, template <Factors, int, int> class UnitOf>
TRINE_KERNEL_RESIDENT(kGemmThreads, 2)
WideGemm(GemmArgs args) {
  using Tile = WideTile;
  using Unit = UnitOf<Form::kFactors, Tile::kM, Tile::kN>;
  using Stages = GemmStages<Form::kFactors, Tile>;
  TRINE_SHARED(Stages, shared);
  const uint32_t lane = ThreadX() % kLanes, group = ThreadX() / kLanes;
  const uint32_t row = group / 4 * (16 * Tile::kM), column = group % 4 * (8 * Tile::kN);
  const int blocks = static_cast<int>(args.k / 32);
  TileColumns tile;
  if (!FindColumns(args, BlockX(), Tile::kColumns, &tile)) return;

  for (uint32_t first_row = BlockY() * Tile::kRows; first_row < args.n;
       first_row += GridY() * Tile::kRows) {
    float sums[Unit::kResults];
    float waiting[3][Unit::kResults];
    StageLoader<Form, Tile> loader(args, tile, first_row);
    const int depth = static_cast<int>(Tile::Depth(ThreadX()));
    int at = 0, waits = 0;
    if (!tile.zeros) {
      SyncBlock();  // of the rows before, all is read
      loader.Begin(8 * depth, &shared.stage[0]);
      loader.End(&shared.stage[0]);
    }
    for (int turn = 0; turn < 8; ++turn) {
      TRINE_UNROLL
      for (int i = 0; i < Unit::kResults; ++i) sums[i] = 0.0f;
      const int class_index = ClassOfTurn(turn);
      for (int first = class_index; first < blocks && !tile.zeros; first += 8 * Tile::kDepth) {
        SyncBlock();
        int next = first + 8 * static_cast<int>(Tile::kDepth);
        if (next >= blocks) {  // the first of the next class that there is
          next = blocks;
          for (int t = turn + 1; t < 8 && next == blocks; ++t) {
            if (ClassOfTurn(t) < blocks) next = ClassOfTurn(t);
          }
        }
        loader.Begin(next + 8 * depth, &shared.stage[at ^ 1]);
        if (column < tile.count) {
          TRINE_UNROLL
          for (int d = 0; d < static_cast<int>(Tile::kDepth); ++d) {
            if (first + 8 * d >= blocks) break;
            const uint32_t place = static_cast<uint32_t>(d) * Tile::kPitch;
            Unit::Step(shared.stage[at], place + row, place + column, lane, sums);
          }
        }
        loader.End(&shared.stage[at ^ 1]);
        at ^= 1;
      }
      for (int t = turn; (t & 1) != 0; t >>= 1) {
        --waits;
        TRINE_UNROLL
        for (int i = 0; i < Unit::kResults; ++i) sums[i] = waiting[waits][i] + sums[i];
      }
      if (turn < 7) {
        TRINE_UNROLL
        for (int i = 0; i < Unit::kResults; ++i) waiting[waits][i] = sums[i];
        ++waits;
      }
    }
    WriteResults<Unit>(args, tile, first_row + row, column, lane, sums);
  }
}

template <class Form, template <Factors, int, int> class UnitOf>
TRINE_KERNEL_RESIDENT(kGemmThreads, 2)
NarrowGemm(GemmArgs args) {
  using Tile = NarrowTile;
  using Unit = UnitOf<Form::kFactors, Tile::kM, Tile::kN>;
  using Stages = GemmStages<Form::kFactors, Tile>;
  TRINE_SHARED(Stages, shared);
  const uint32_t lane = ThreadX() % kLanes, class_index = ThreadX() / kLanes;
  const int blocks = static_cast<int>(args.k / 32);
  TileColumns tile;
  if (!FindColumns(args, BlockX(), Tile::kColumns, &tile)) return;

  for (uint32_t first_row = BlockY() * Tile::kRows; first_row < args.n;
       first_row += GridY() * Tile::kRows) {
    float sums[Unit::kResults];
    TRINE_UNROLL
    for (int i = 0; i < Unit::kResults; ++i) sums[i] = 0.0f;
    StageLoader<Form, Tile> loader(args, tile, first_row);
    const int depth = static_cast<int>(Tile::Depth(ThreadX()));
    int at = 0;
    SyncBlock();  // of the rows before, all is read
    if (!tile.zeros) {
      loader.Begin(depth, &shared.stage[0]);
      loader.End(&shared.stage[0]);
    }
    for (int first = 0; first < blocks && !tile.zeros; first += 8) {
      SyncBlock();
      loader.Begin(first + 8 + depth, &shared.stage[at ^ 1]);
      if (first + static_cast<int>(class_index) < blocks) {
        const uint32_t place = class_index * Tile::kPitch;
        Unit::Step(shared.stage[at], place, place, lane, sums);
      }
      loader.End(&shared.stage[at ^ 1]);
      at ^= 1;
    }
    // The classes are joined through the memory of the stages.
    auto* joint = reinterpret_cast<float*>(&shared);
    for (uint32_t half = 4; half > 0; half /= 2) {
      SyncBlock();
      float* mine = joint + class_index % half * (Unit::kResults * kLanes) + lane;
      if (class_index >= half && class_index < 2 * half) {
        TRINE_UNROLL
        for (int i = 0; i < Unit::kResults; ++i) mine[i * kLanes] = sums[i];
      }
      SyncBlock();
      if (class_index < half) {
        TRINE_UNROLL
        for (int i = 0; i < Unit::kResults; ++i) sums[i] = sums[i] + mine[i * kLanes];
      }
    }
    if (class_index == 0) WriteResults<Unit>(args, tile, first_row, 0, lane, sums);
  }
}

// The kernel of a form, for a unit that this is built for; nullptr else.
template <class Form>
GemmKernel GemmOf(MatrixUnit unit, bool wide) {
  switch (unit) {
    case MatrixUnit::kDot4:
      return wide ? &WideGemm<Form, Dot4Unit> : &NarrowGemm<Form, Dot4Unit>;
#if defined(TRINE_HAS_MMA)
    case MatrixUnit::kMma:
      return wide ? &WideGemm<Form, MmaUnit> : &NarrowGemm<Form, MmaUnit>;
#endif
    default:
      return nullptr;
  }
}

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GEMM_TILE_H_
