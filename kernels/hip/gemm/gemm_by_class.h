// Multiplies packed weights with many columns, one class of the contract's sums after the other.
//
// A result is ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)), where s_c sums the terms of blocks
// c, c + 8, c + 16 and so on. A thread computes its results' s0, then s4, s2, s6, s1, s5, s3 and
// s7. So it needs registers for one sum of each result, where a kernel that takes the blocks in
// order (gemm_tile.h) needs eight, or eight times the threads. Sums that wait for others are put
// aside: at most three of them at a time, two in shared memory and one in y.
//
// A block of threads computes a tile of results. Each warp has 32 rows of the tile, and 32 of its
// columns in groups of 8, which are dealt to the warps in turn: in a tile that is not full, all
// warps leave out as many. Operands pass through stages in shared memory, which hold kSteps blocks
// of each row and column. Copies into the stages after the next run while a stage is multiplied.
#pragma once

#include <cstdint>

#include "kernels/hip/gemm/class_step.h"
#include "kernels/hip/gemm/gemm_args.h"
#include "kernels/hip/gpu/device.h"
#include "kernels/hip/gpu/matrix.h"

#if defined(TRINE_HAS_MMA)
namespace trine::hip {

template <uint32_t kRowWarpsOf, uint32_t kColumnWarpsOf>
struct ClassTile {
  static constexpr uint32_t kRowWarps = kRowWarpsOf, kColumnWarps = kColumnWarpsOf;
  static constexpr uint32_t kRows = 32 * kRowWarps, kColumns = 32 * kColumnWarps;
  static constexpr uint32_t kThreads = kLanes * kRowWarps * kColumnWarps;
  // A thread's results: kM times kN fragments of four.
  static constexpr uint32_t kM = 2, kN = 4;
  static constexpr uint32_t kSteps = 2, kStages = 3;
};

template <class Form, class Tile>
struct ClassStage {
  using Step = ClassStep<Form, Tile::kRows, Tile::kColumns>;
  Step steps[Tile::kSteps];
};

// What a block of threads has in shared memory.
template <class Form, class Tile>
struct ClassMemory {
  ClassStage<Form, Tile> stages[Tile::kStages];
  Float4 aside[2][Tile::kM * Tile::kN][Tile::kThreads];
};

// The place of a stage in a tile's work: the class whose turn it is, and the first of the stage's
// blocks, counted within that class. A class without blocks has one empty stage.
struct ClassPlace {
  int turn = 0;  // 8: behind the last stage
  int first = 0;

  // The class of a turn: its three bits in reverse.
  TRINE_DEVICE int ClassIndex() const { return (turn & 1) << 2 | (turn & 2) | turn >> 2; }
  TRINE_DEVICE int Block(int step) const { return 8 * (first + step) + ClassIndex(); }
  TRINE_DEVICE bool LastOfClass(int blocks, int steps) const { return Block(steps) >= blocks; }
  TRINE_DEVICE void Advance(int blocks, int steps) {
    if (LastOfClass(blocks, steps)) {
      first = 0;
      ++turn;
    } else {
      first += steps;
    }
  }
};

// A thread's part in filling stages.
template <class Form, class Tile>
class ClassLoader {
 public:
  using Stage = ClassStage<Form, Tile>;
  static constexpr uint32_t kThreads = Tile::kThreads;
  static constexpr uint32_t kRowCopies = Tile::kSteps * Tile::kRows;
  static constexpr uint32_t kValueCopies = Tile::kSteps * 2 * Tile::kColumns;
  static constexpr uint32_t kFactorCopies = Tile::kSteps * Tile::kColumns;
  static constexpr uint32_t kRowLoads = (kRowCopies + kThreads - 1) / kThreads;
  static constexpr uint32_t kValueLoads = (kValueCopies + kThreads - 1) / kThreads;
  static_assert(kThreads % Tile::kRows == 0 && kThreads >= kFactorCopies);

  TRINE_DEVICE ClassLoader(const GemmArgs& args, const TileColumns& tile, uint32_t first_row)
      : args_(args), blocks_(static_cast<int>(args.k / 32)) {
    row_ = WeightRow(args, tile, first_row + ThreadX() % Tile::kRows);
    TRINE_UNROLL
    for (uint32_t i = 0; i < kValueLoads; ++i) {
      const uint32_t column = ValueColumn(i);
      // Groups of 8 columns without any column of the tile are not read.
      const bool any = column < (tile.count + 7) / 8 * 8;
      values_[i] = any ? OffsetOf(args.q_stride, ColumnOf(tile, column), args.slots) : -1;
    }
    const uint32_t column = ThreadX() / Tile::kSteps;
    const bool any = column < (tile.count + 7) / 8 * 8 && ThreadX() < kFactorCopies;
    factors_ = any ? OffsetOf(args.q_stride, ColumnOf(tile, column), args.slots) : -1;
  }

  // Begins the copies of a stage, and the loads of its rows' factors.
  TRINE_DEVICE void Begin(const ClassPlace& place, Stage* stage) {
    TRINE_UNROLL
    for (uint32_t i = 0; i < kRowLoads; ++i) {
      const uint32_t step = RowStep(i);
      const int block = place.Block(static_cast<int>(step));
      if (step >= Tile::kSteps || block >= blocks_) continue;
      Form::template BeginRow<Tile::kRows>(row_, blocks_, block, ThreadX() % Tile::kRows,
                                           &stage->steps[step].w);
      raw_[i] = Form::Fetch(row_, blocks_, block);
    }
    TRINE_UNROLL
    for (uint32_t i = 0; i < kValueLoads; ++i) {
      const uint32_t half = ThreadX() % 2, step = (ThreadX() + i * kThreads) / 2 % Tile::kSteps;
      const int block = place.Block(static_cast<int>(step));
      if (values_[i] < 0 || block >= blocks_) continue;
      const auto* from = reinterpret_cast<const Word4*>(args_.q.values);
      BeginCopy<16>(&stage->steps[step].x[half][ValueColumn(i)],
                    from + 2 * (values_[i] * blocks_ + block) + half);
    }
    const uint32_t step = ThreadX() % Tile::kSteps;
    if (factors_ >= 0 && place.Block(static_cast<int>(step)) < blocks_) {
      const int64_t run = factors_ * 8 + place.ClassIndex();
      BeginCopy<8>(
          &stage->steps[step].columns[ThreadX() / Tile::kSteps],
          args_.q.by_class + run * ClassRun(blocks_) + place.first + static_cast<int>(step));
    }
  }

  // Writes the factors that the last Begin loaded. `place`: the same as it had.
  TRINE_DEVICE void EndRows(const ClassPlace& place, Stage* stage) const {
    TRINE_UNROLL
    for (uint32_t i = 0; i < kRowLoads; ++i) {
      const uint32_t step = RowStep(i);
      const int block = place.Block(static_cast<int>(step));
      if (step >= Tile::kSteps || block >= blocks_) continue;
      stage->steps[step].w.records[ThreadX() % Tile::kRows] = Form::RecordOf(raw_[i], block);
    }
  }

 private:
  TRINE_DEVICE static uint32_t RowStep(uint32_t i) {
    return (ThreadX() + i * kThreads) / Tile::kRows;
  }
  TRINE_DEVICE static uint32_t ValueColumn(uint32_t i) {
    return (ThreadX() + i * kThreads) / (2 * Tile::kSteps);
  }

  const GemmArgs& args_;
  int blocks_;
  const std::byte* row_;
  int64_t values_[kValueLoads];  // columns of q, or -1
  int64_t factors_;
  typename Form::Factors raw_[kRowLoads] = {};
};

// A thread's results.
template <class Tile>
class ClassSums {
 public:
  static constexpr uint32_t kM = Tile::kM, kN = Tile::kN;
  using Aside = Float4[kM * kN][Tile::kThreads];

  TRINE_DEVICE explicit ClassSums(const TileColumns& tile)
      : sums_(Warp() % Tile::kRowWarps * 32, 8 * ColumnWarp(), 8 * Tile::kColumnWarps,
              GroupsOf(tile)) {}

  template <class Step>
  TRINE_DEVICE void Add(const Step& step) {
    sums_.Add(step);
  }

  // Ends the turn of a class. Only after the last turn all sums are complete.
  TRINE_DEVICE void EndTurn(int turn, const GemmArgs& args, const TileColumns& tile,
                            uint32_t first_row, Aside (&aside)[2]) {
    if (!Join(turn & 1, aside[0])) return;
    if (!Join(turn & 2, aside[1])) return;
    const bool last = (turn & 4) != 0;
    ForResults(args, tile, first_row, [&](float* y, uint32_t row, float& sum) {
      *y = last ? Finish(args, tile, row, *y + sum) : sum;
    });
    sums_.Clear();
  }

  // Writes the results of columns whose ids are no expert.
  TRINE_DEVICE void WriteZeros(const GemmArgs& args, const TileColumns& tile, uint32_t first_row) {
    ForResults(args, tile, first_row, [](float* y, uint32_t, float&) { *y = 0.0f; });
  }

 private:
  TRINE_DEVICE static uint32_t Warp() { return ThreadX() / kLanes; }
  TRINE_DEVICE static uint32_t ColumnWarp() { return Warp() / Tile::kRowWarps; }
  // Returns how many groups of 8 columns of the tile this warp has.
  TRINE_DEVICE static uint32_t GroupsOf(const TileColumns& tile) {
    const uint32_t groups = (tile.count + 7) / 8, warp = ColumnWarp();
    return groups <= warp ? 0 : (groups - warp + Tile::kColumnWarps - 1) / Tile::kColumnWarps;
  }

  // Adds the sums that were put aside, or puts these aside, clears them and returns false.
  TRINE_DEVICE bool Join(bool add, Aside& aside) {
    TRINE_UNROLL
    for (uint32_t i = 0; i < kM * kN; ++i) {
      Float4& other = aside[i][ThreadX()];
      float(&s)[4] = sums_[i];
      if (add) {
        const Float4 v = other;
        s[0] = v.x + s[0], s[1] = v.y + s[1], s[2] = v.z + s[2], s[3] = v.w + s[3];
      } else {
        other = Float4{s[0], s[1], s[2], s[3]};
      }
    }
    if (!add) sums_.Clear();
    return add;
  }

  // Calls use(y, row, sum) for each of the thread's results that the product has.
  template <class Use>
  TRINE_DEVICE void ForResults(const GemmArgs& args, const TileColumns& tile, uint32_t first_row,
                               const Use& use) {
    TRINE_UNROLL
    for (uint32_t n = 0; n < kN; ++n) {
      TRINE_UNROLL
      for (uint32_t c = 0; c < 2; ++c) {
        const uint32_t column = sums_.ColumnOfResult(n, c);
        if (column >= tile.count) continue;
        float* y = ColumnOfY(args, tile, column);
        TRINE_UNROLL
        for (uint32_t i = 0; i < 2 * kM; ++i) {
          const uint32_t m = i / 2, j = 2 * (i % 2) + c, row = first_row + sums_.RowOf(m, j);
          if (row < args.n) use(y + row, row, sums_[m * kN + n][j]);
        }
      }
    }
  }

  WarpSums<kM, kN> sums_;
};

template <class Form, class Tile>
TRINE_DEVICE void MultiplyTile(const GemmArgs& args, const TileColumns& tile, uint32_t first_row,
                               ClassMemory<Form, Tile>* memory) {
  constexpr int kSteps = Tile::kSteps, kStages = Tile::kStages;
  static_assert(kStages == 3);
  const int blocks = static_cast<int>(args.k / 32);
  ClassSums<Tile> sums(tile);
  if (tile.zeros) return sums.WriteZeros(args, tile, first_row);
  ClassLoader<Form, Tile> loader(args, tile, first_row);
  ClassPlace here, loading;
  loader.Begin(loading, &memory->stages[0]);
  EndCopyGroup();
  loader.EndRows(loading, &memory->stages[0]);
  loading.Advance(blocks, kSteps);
  loader.Begin(loading, &memory->stages[1]);
  EndCopyGroup();
  for (int at = 0; here.turn < 8; at = at == kStages - 1 ? 0 : at + 1) {
    AwaitCopies<1>();
    // Now this stage is complete, and the one before it is no longer read.
    SyncBlock();
    loader.EndRows(loading, &memory->stages[at == kStages - 1 ? 0 : at + 1]);
    if (loading.turn < 8) loading.Advance(blocks, kSteps);
    if (loading.turn < 8) {
      loader.Begin(loading, &memory->stages[at == 0 ? kStages - 1 : at - 1]);
    }
    EndCopyGroup();
    TRINE_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      if (here.Block(step) < blocks) sums.Add(memory->stages[at].steps[step]);
    }
    if (here.LastOfClass(blocks, kSteps)) {
      sums.EndTurn(here.turn, args, tile, first_row, memory->aside);
    }
    here.Advance(blocks, kSteps);
  }
  AwaitCopies<0>();
  SyncBlock();
}

template <class Form, class Tile>
TRINE_KERNEL_RESIDENT(Tile::kThreads, 512 / Tile::kThreads)
GemmByClass(GemmArgs args) {
  BeginAfterEarlier();
  TRINE_DYNAMIC_SHARED(std::byte, shared);
  auto* memory = reinterpret_cast<ClassMemory<Form, Tile>*>(shared);
  TileColumns tile;
  if (!FindColumns(args, BlockX(), Tile::kColumns, &tile)) return;
  for (uint32_t first_row = BlockY() * Tile::kRows; first_row < args.n;
       first_row += GridY() * Tile::kRows) {
    MultiplyTile<Form, Tile>(args, tile, first_row, memory);
  }
}

}  // namespace trine::hip
#endif  // TRINE_HAS_MMA
