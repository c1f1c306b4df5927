// Multiplies packed weights with some tens of columns, as decoding of many sequences does.
//
// A block of threads has eight warps, one for each class of the contract's sums, and all compute
// the same tile: 32 rows by all of its columns. Weights are read once, so what counts is how many
// bytes are on their way: each warp copies its own blocks into its own stages, kStages - 1 steps
// ahead, and waits for no other warp. At the end the sums of the classes are joined through shared
// memory.
#pragma once

#include <cstdint>

#include "kernels/hip/gemm/class_step.h"
#include "kernels/hip/gemm/gemm_args.h"
#include "kernels/hip/gpu/device.h"

#if defined(TRINE_HAS_MMA)
namespace trine::hip {

template <class FormOf, uint32_t kColumnsOf>
struct WarpTile {
  using Form = FormOf;
  static constexpr uint32_t kRows = 32, kColumns = kColumnsOf, kWarps = 8;
  static constexpr uint32_t kThreads = kLanes * kWarps, kStages = 4;
  static constexpr uint32_t kM = kRows / 16, kN = kColumns / 8, kFragments = kM * kN;
  static_assert(kRows == kLanes);  // a lane copies the weights of a row

  using Step = ClassStep<Form, kRows, kColumns>;
  union Memory {
    Step steps[kWarps][kStages];
    Float4 joint[kWarps][kFragments][kLanes];
  };
};

// A lane's part in filling its warp's stages with the blocks of one class.
template <class Tile>
class WarpLoader {
 public:
  using Form = typename Tile::Form;
  using Step = typename Tile::Step;
  static constexpr uint32_t kValueCopies = 2 * Tile::kColumns / kLanes;
  static constexpr uint32_t kFactorCopies = (Tile::kColumns + kLanes - 1) / kLanes;

  TRINE_DEVICE WarpLoader(const GemmArgs& args, const TileColumns& tile, uint32_t first_row,
                          int class_index)
      : args_(args),
        blocks_(static_cast<int>(args.k / 32)),
        class_(class_index),
        lane_(ThreadX() % kLanes),
        row_(WeightRow(args, tile, first_row + lane_)) {
    TRINE_UNROLL
    for (uint32_t i = 0; i < kValueCopies; ++i) values_[i] = Column(tile, (lane_ + kLanes * i) / 2);
    TRINE_UNROLL
    for (uint32_t i = 0; i < kFactorCopies; ++i) factors_[i] = Column(tile, lane_ + kLanes * i);
  }

  // The number of steps.
  TRINE_DEVICE int Steps() const { return (blocks_ - class_ + 7) / 8; }

  // Begins the copies of a step.
  TRINE_DEVICE void Begin(int step, Step* to) const {
    const int block = 8 * step + class_;
    Form::template BeginRow<Tile::kRows>(row_, blocks_, block, lane_, &to->w);
    const auto* from = reinterpret_cast<const Word4*>(args_.q.values);
    TRINE_UNROLL
    for (uint32_t i = 0; i < kValueCopies; ++i) {
      if (values_[i] < 0) continue;
      const uint32_t half = lane_ % 2, column = (lane_ + kLanes * i) / 2;
      BeginCopy<16>(&to->x[half][column], from + 2 * (values_[i] * blocks_ + block) + half);
    }
    TRINE_UNROLL
    for (uint32_t i = 0; i < kFactorCopies; ++i) {
      if (factors_[i] < 0) continue;
      BeginCopy<8>(&to->columns[lane_ + kLanes * i],
                   args_.q.by_class + (factors_[i] * 8 + class_) * ClassRun(blocks_) + step);
    }
  }

  // Loads the factors of a step's row, and writes them for the other lanes.
  TRINE_DEVICE typename Form::Factors Fetch(int step) const {
    return Form::Fetch(row_, blocks_, 8 * step + class_);
  }
  TRINE_DEVICE void Write(int step, const typename Form::Factors& factors, Step* to) const {
    to->w.records[lane_] = Form::RecordOf(factors, 8 * step + class_);
  }

 private:
  // Returns the column of q, or -1 for a group of 8 columns that the tile does not have.
  TRINE_DEVICE int64_t Column(const TileColumns& tile, uint32_t i) const {
    if (i >= Tile::kColumns || i >= (tile.count + 7) / 8 * 8) return -1;
    return OffsetOf(args_.q_stride, ColumnOf(tile, i), args_.slots);
  }

  const GemmArgs& args_;
  int blocks_, class_;
  uint32_t lane_;
  const std::byte* row_;
  int64_t values_[kValueCopies], factors_[kFactorCopies];
};

// Adds the terms of all blocks of this warp's class.
template <class Tile>
TRINE_DEVICE void AddClass(const WarpLoader<Tile>& loader,
                           typename Tile::Step (&stages)[Tile::kStages],
                           WarpSums<Tile::kM, Tile::kN>* sums) {
  constexpr int kStages = Tile::kStages;
  const int steps = loader.Steps();
  typename Tile::Form::Factors next = {};
  for (int i = 0; i < kStages - 1; ++i) {
    if (i < steps) loader.Begin(i, &stages[i]);
    EndCopyGroup();
  }
  if (steps > 0) loader.Write(0, loader.Fetch(0), &stages[0]);
  if (steps > 1) next = loader.Fetch(1);
  for (int step = 0; step < steps; ++step) {
    AwaitCopies<kStages - 2>();
    // Now this step is complete, and no lane reads the one before it.
    SyncLanes();
    if (step + 1 < steps) loader.Write(step + 1, next, &stages[(step + 1) % kStages]);
    if (step + 2 < steps) next = loader.Fetch(step + 2);
    if (step + kStages - 1 < steps) {
      loader.Begin(step + kStages - 1, &stages[(step + kStages - 1) % kStages]);
    }
    EndCopyGroup();
    sums->Add(stages[step % kStages]);
  }
  AwaitCopies<0>();
}

// Joins the classes and writes the results. Each warp does every eighth fragment.
template <class Tile>
TRINE_DEVICE void JoinClasses(const GemmArgs& args, const TileColumns& tile, uint32_t first_row,
                              typename Tile::Memory* memory, WarpSums<Tile::kM, Tile::kN>* sums) {
  const uint32_t lane = ThreadX() % kLanes, warp = ThreadX() / kLanes;
  SyncBlock();  // no warp reads its stages any longer
  TRINE_UNROLL
  for (uint32_t i = 0; i < Tile::kFragments; ++i) {
    const float(&s)[4] = (*sums)[i];
    memory->joint[warp][i][lane] = Float4{s[0], s[1], s[2], s[3]};
  }
  SyncBlock();
  for (uint32_t i = warp; i < Tile::kFragments; i += Tile::kWarps) {
    float s[8][4];
    TRINE_UNROLL
    for (uint32_t c = 0; c < 8; ++c) {
      const Float4 v = memory->joint[c][i][lane];
      s[c][0] = v.x, s[c][1] = v.y, s[c][2] = v.z, s[c][3] = v.w;
    }
    TRINE_UNROLL
    for (uint32_t j = 0; j < 4; ++j) {
      const float even = (s[0][j] + s[4][j]) + (s[2][j] + s[6][j]);
      const float odd = (s[1][j] + s[5][j]) + (s[3][j] + s[7][j]);
      const uint32_t row = first_row + sums->RowOf(i / Tile::kN, j);
      const uint32_t column = sums->ColumnOfResult(i % Tile::kN, j);
      if (row < args.n && column < tile.count) {
        ColumnOfY(args, tile, column)[row] = Finish(args, tile, row, even + odd);
      }
    }
  }
  SyncBlock();  // the next tile may fill the stages
}

template <class Tile>
TRINE_KERNEL_RESIDENT(Tile::kThreads, Tile::kColumns <= 32 ? 2 : 1)
GemmByWarp(GemmArgs args) {
  BeginAfterEarlier();
  TRINE_DYNAMIC_SHARED(std::byte, shared);
  auto* memory = reinterpret_cast<typename Tile::Memory*>(shared);
  TileColumns tile;
  if (!FindColumns(args, BlockX(), Tile::kColumns, &tile)) return;
  for (uint32_t first_row = BlockY() * Tile::kRows; first_row < args.n;
       first_row += GridY() * Tile::kRows) {
    WarpSums<Tile::kM, Tile::kN> sums(0, 0, 8, (tile.count + 7) / 8);
    if (!tile.zeros) {
      const auto warp = static_cast<int>(ThreadX() / kLanes);
      const WarpLoader<Tile> loader(args, tile, first_row, warp);
      AddClass<Tile>(loader, memory->steps[warp], &sums);
    }
    JoinClasses<Tile>(args, tile, first_row, memory, &sums);
  }
}

}  // namespace trine::hip
#endif  // TRINE_HAS_MMA
