// Multiplies quantised weights with many columns. Each block of threads computes a tile of the
// result.
//
// A block of threads has eight groups of 32 lanes, or eight waves of 64 if the unit needs waves.
// Each of them has one of the eight classes of the contract's sums: it computes the whole tile from
// every eighth block of weights. Operands pass through a stage in shared memory, which has eight
// blocks of every row and column. While one stage is multiplied, threads load the next. At the end
// the sums of the classes are joined through the same memory.
#pragma once

#include <cstdint>

#include "kernels/hip/gemm/gemm_args.h"
#include "kernels/hip/gemm/gemm_kernels.h"
#include "kernels/hip/gemm/gemm_terms.h"
#include "kernels/hip/gemm/gemm_units.h"
#include "kernels/hip/weights/weight_tiles.h"

namespace trine::hip {

inline constexpr uint32_t kClasses = 8;
static_assert(kClasses * kLanes == kGemmThreads);

// A tile of 16 kM rows and kParts times 8 kN columns.
template <int kMOf, int kNOf, int kPartsOf, int kResidentOf>
struct GemmTile {
  static constexpr int kM = kMOf, kN = kNOf, kParts = kPartsOf;
  static constexpr int kResident = kResidentOf;  // blocks of threads on a multiprocessor
  static constexpr uint32_t kRows = 16 * kM, kColumns = 8 * kN * kParts;
  // Neighbouring threads load neighbouring blocks, one of each class. The pitch puts these into
  // different banks of shared memory.
  static constexpr uint32_t kPitch = kRows + 1;
  static_assert(kRows == kColumns);
};
using LargeTile = GemmTile<4, 4, 2, 1>;
using SmallTile = GemmTile<2, 4, 1, 2>;
static_assert(LargeTile::kRows == kLargeTile.rows && LargeTile::kColumns == kLargeTile.columns);
static_assert(SmallTile::kRows == kSmallTile.rows && SmallTile::kColumns == kSmallTile.columns);

template <Factors kFactors, class Tile>
struct GemmStage {
  static constexpr uint32_t kPlaces = kClasses * Tile::kPitch;  // by class, then row or column
  Word4 w[2][kPlaces], x[2][kPlaces];                           // by halves of blocks
  typename Terms<kFactors>::RowRecord rows[kPlaces];
  typename Terms<kFactors>::ColumnRecord columns[kPlaces];
};

// A thread's part in filling stages: one class, of every 32nd, or 64th, row and column.
template <class Form, class Tile, uint32_t kWave>
class StageLoader {
 public:
  using T = Terms<Form::kFactors>;
  using Stage = GemmStage<Form::kFactors, Tile>;
  // true: waves of 64 have more threads than a small tile needs, so half of them load nothing.
  static constexpr bool kSomeIdle = kWave > Tile::kRows;
  static constexpr uint32_t kLoads = kSomeIdle ? 1 : Tile::kRows / kWave;

  TRINE_DEVICE_SHARED StageLoader(const GemmArgs& args, const TileColumns& tile, uint32_t first_row)
      : q_(args.q), blocks_(static_cast<int>(args.k / 32)) {
    const uint32_t thread = ComputedHere(ThreadX());
    TRINE_UNROLL
    for (uint32_t i = 0; i < kLoads; ++i) {
      const uint32_t line = thread / kClasses + kWave * i;
      rows_[i] = WeightRow(args, tile, first_row + line);
      columns_[i] = OffsetOf(args.q_stride, ColumnOf(tile, line), args.slots) * blocks_;
    }
  }

  // Begins the loads of a stage, whose first block is `first`. Leaves out blocks beyond the last.
  TRINE_DEVICE_SHARED void Begin(int first) {
    block_ = first + static_cast<int>(ThreadX() % kClasses);
    if (kSomeIdle && ThreadX() / kClasses >= Tile::kRows) block_ = blocks_;
    if (block_ >= blocks_) return;
    TRINE_UNROLL
    for (uint32_t i = 0; i < kLoads; ++i) {
      Form::Fetch(rows_[i], blocks_, block_, &raw_[i]);
      const int64_t at = columns_[i] + block_;
      const auto* values = reinterpret_cast<const Word4*>(q_.values) + 2 * at;
      low_[i] = values[0];
      high_[i] = values[1];
      scales_[i] = q_.scales[at];
      if constexpr (T::kMinimum) sums_[i] = q_.sums[at];
    }
  }

  TRINE_DEVICE_SHARED void End(Stage* stage) const {
    if (block_ >= blocks_) return;
    TRINE_UNROLL
    for (uint32_t i = 0; i < kLoads; ++i) {
      const uint32_t place = ThreadX() % kClasses * Tile::kPitch + ThreadX() / kClasses + kWave * i;
      WeightBlock block;
      Form::Decode(raw_[i], &block);
      stage->w[0][place] = {block.q[0], block.q[1], block.q[2], block.q[3]};
      stage->w[1][place] = {block.q[4], block.q[5], block.q[6], block.q[7]};
      stage->rows[place] = T::Record(block);
      stage->x[0][place] = low_[i];
      stage->x[1][place] = high_[i];
      stage->columns[place] = T::Record(scales_[i], sums_[i]);
    }
  }

 private:
  const QuantizedColumns& q_;
  int blocks_;
  int block_ = 0;
  const std::byte* rows_[kLoads];
  int64_t columns_[kLoads];
  typename Form::Raw raw_[kLoads] = {};
  Word4 low_[kLoads] = {}, high_[kLoads] = {};
  float scales_[kLoads] = {};
  uint32_t sums_[kLoads] = {};
};

// Joins the classes of every result and writes the results. kJoint results of each lane go through
// shared memory at a time. Each group of lanes then joins one or two of them.
template <class Unit>
inline constexpr int kJoint = 512 / Unit::kWave;
template <class Unit>
using Joint = float[kClasses][kJoint<Unit>][Unit::kWave];

template <class Unit>
TRINE_DEVICE_SHARED void JoinAndWrite(const GemmArgs& args, const TileColumns& tile,
                                      uint32_t first_row, uint32_t first_column,
                                      const float (&sums)[Unit::kResults], Joint<Unit>& joint) {
  const uint32_t thread = ComputedHere(ThreadX());
  const uint32_t lane = thread % Unit::kWave, group = thread / Unit::kWave;
  constexpr int kEach = kJoint<Unit> / static_cast<int>(kClasses);
  TRINE_UNROLL
  for (int first = 0; first < Unit::kResults; first += kJoint<Unit>) {
    SyncBlock();
    TRINE_UNROLL
    for (int i = 0; i < kJoint<Unit>; ++i) joint[group][i][lane] = sums[first + i];
    SyncBlock();
    TRINE_UNROLL
    for (int j = 0; j < kEach; ++j) {
      const int i = static_cast<int>(group) * kEach + j;
      const auto s = [&](int class_index) { return joint[class_index][i][lane]; };
      const float even = (s(0) + s(4)) + (s(2) + s(6));
      const float odd = (s(1) + s(5)) + (s(3) + s(7));
      const uint32_t row = first_row + Unit::Row(lane, first + i);
      const uint32_t column = first_column + Unit::Column(lane, first + i);
      if (row < args.n && column < tile.count) {
        ColumnOfY(args, tile, column)[row] = Finish(args, tile, row, even + odd);
      }
    }
  }
}

template <class Form, template <Factors, int, int> class UnitOf, class Tile>
TRINE_DEVICE void GemmBlock(const GemmArgs& args, GemmStage<Form::kFactors, Tile>& stage) {
  using Unit = UnitOf<Form::kFactors, Tile::kM, Tile::kN>;
  static_assert(sizeof(Joint<Unit>) <= sizeof(stage) && Unit::kResults % kJoint<Unit> == 0);
  const uint32_t lane = ThreadX() % Unit::kWave, class_index = ThreadX() / Unit::kWave;
  const int blocks = static_cast<int>(args.k / 32);
  TileColumns tile;
  if (!FindColumns(args, BlockX(), Tile::kColumns, &tile)) return;
  // Most tiles of experts are not full.
  const bool all_parts = tile.count > Tile::kColumns / Tile::kParts;

  for (uint32_t first_row = BlockY() * Tile::kRows; first_row < args.n;
       first_row += GridY() * Tile::kRows) {
    float sums[Tile::kParts][Unit::kResults];
    TRINE_UNROLL
    for (int part = 0; part < Tile::kParts; ++part) {
      TRINE_UNROLL
      for (int i = 0; i < Unit::kResults; ++i) sums[part][i] = 0.0f;
    }
    StageLoader<Form, Tile, Unit::kWave> loader(args, tile, first_row);
    if (!tile.zeros) loader.Begin(0);
    for (int first = 0; first < blocks && !tile.zeros; first += kClasses) {
      SyncBlock();  // all threads have read the stage
      loader.End(&stage);
      SyncBlock();
      loader.Begin(first + static_cast<int>(kClasses));
      if (first + static_cast<int>(class_index) < blocks) {
        const uint32_t place = class_index * Tile::kPitch;
        TRINE_UNROLL
        for (int part = 0; part < Tile::kParts; ++part) {
          if (part > 0 && !all_parts) continue;  // a break would keep clang from unrolling
          Unit::Step(stage, place, place + 8 * Tile::kN * static_cast<uint32_t>(part), lane,
                     sums[part]);
        }
      }
    }
    TRINE_UNROLL
    for (int part = 0; part < Tile::kParts; ++part) {
      JoinAndWrite<Unit>(args, tile, first_row, 8 * Tile::kN * static_cast<uint32_t>(part),
                         sums[part], reinterpret_cast<Joint<Unit>&>(stage));
    }
  }
}

template <class Form, template <Factors, int, int> class UnitOf, class Tile>
TRINE_KERNEL_RESIDENT((kClasses * UnitOf<Form::kFactors, Tile::kM, Tile::kN>::kWave),
                      Tile::kResident)
QuantizedGemm(GemmArgs args) {
  BeginAfterEarlier();
  if constexpr (UnitOf<Form::kFactors, Tile::kM, Tile::kN>::kPresent) {
    using Stage = GemmStage<Form::kFactors, Tile>;
    TRINE_SHARED(Stage, stage);
    GemmBlock<Form, UnitOf, Tile>(args, stage);
  } else {
    NeverStarted();
  }
}

// Returns the kernels for units of whole waves. No one asks for large tiles that do not fit.
template <class Form>
struct WaveGemm;
template <quant::Type kType, bool kPacked>
struct WaveGemm<WeightForm<kType, kPacked>> {
  template <template <Factors, int, int> class UnitOf>
  static GemmKernel Of([[maybe_unused]] bool large) {
    using Form = WeightForm<kType, kPacked>;
    if constexpr (FitsLargeWaves(kType, kPacked)) {
      if (large) return &QuantizedGemm<Form, UnitOf, LargeTile>;
    }
    return &QuantizedGemm<Form, UnitOf, SmallTile>;
  }
};

// Returns the kernel for a form of weights, or nullptr if this build has none for the unit.
template <class Form>
GemmKernel GemmOf(MatrixUnit unit, bool large) {
  switch (unit) {
    case MatrixUnit::kDot4:
      if constexpr (kLargeTiles) {
        if (large) return &QuantizedGemm<Form, Dot4Unit, LargeTile>;
      }
      return &QuantizedGemm<Form, Dot4Unit, SmallTile>;
#if defined(TRINE_HAS_MMA)
    case MatrixUnit::kMma:
      return large ? &QuantizedGemm<Form, MmaUnit, LargeTile>
                   : &QuantizedGemm<Form, MmaUnit, SmallTile>;
#endif
#if defined(TRINE_GPU_HOST)
    case MatrixUnit::kWmma:
      return &QuantizedGemm<Form, WmmaUnit, SmallTile>;
    case MatrixUnit::kWmmaGfx12:
      return &QuantizedGemm<Form, WmmaGfx12Unit, SmallTile>;
    case MatrixUnit::kMfma:
      return WaveGemm<Form>::template Of<MfmaUnit>(large);
    case MatrixUnit::kMfmaGfx942:
      return WaveGemm<Form>::template Of<MfmaGfx942Unit>(large);
#elif defined(TRINE_GPU_AMD)
    case MatrixUnit::kWmma:
    case MatrixUnit::kWmmaGfx12:
    case MatrixUnit::kMfma:
    case MatrixUnit::kMfmaGfx942:
      return WaveGemm<Form>::template Of<DeviceUnit>(large);
#endif
    default:
      return nullptr;
  }
}

}  // namespace trine::hip
