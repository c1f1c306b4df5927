// Multiplies float weights with many columns. Each of the 32 classes of a sum has a lane, which
// adds up one partial sum of each result of a tile. At the end the lanes join these.
#include <cstdint>

#include "kernels/hip/gemm/gemm_args.h"
#include "kernels/hip/gemm/gemm_kernels.h"
#include "kernels/hip/gpu/device.h"

namespace trine::hip {
namespace {

constexpr uint32_t kThreads = kFloatTile.threads;
constexpr uint32_t kRows = kFloatTile.rows, kColumns = kFloatTile.columns;
constexpr uint32_t kDepth = 64;                  // values of a stage, two of each class
constexpr uint32_t kGroups = kThreads / kLanes;  // each has 8 rows and 8 columns of the tile
constexpr uint32_t kGroupRows = kRows / 8;       // groups along the rows
constexpr uint32_t kLoads = kRows / kGroups;     // rows and columns that a group loads
static_assert(kGroupRows * (kColumns / 8) == kGroups && kRows == kColumns);

// Return the first row and column of a thread's group in the tile.
TRINE_DEVICE uint32_t RowOfGroup(uint32_t thread) { return thread / kLanes % kGroupRows * 8; }
TRINE_DEVICE uint32_t ColumnOfGroup(uint32_t thread) { return thread / kLanes / kGroupRows * 8; }

struct Stages {
  float w[2][kRows][kDepth], x[2][kColumns][kDepth];
};

// Value `at` of a row, and value at + 32; zeros beyond the last value.
struct Pair {
  float v[2];
};

template <quant::Type kType, bool kPacked>
TRINE_DEVICE Pair LoadPair(const std::byte* row, uint32_t k, uint32_t at) {
  Pair pair{{0.0f, 0.0f}};
  if constexpr (kPacked) {  // runs of 256 or of 64 values, filled up: packed_rows.h
    const uint32_t run = at & ~255u, lane = at & 31u, part = (at & 255u) / kDepth;
    const uint32_t word = run + 256 <= k ? lane * 4 + part : part * 32 + lane;
    const uint32_t both = reinterpret_cast<const uint32_t*>(row)[run / 2 + word];
    pair.v[0] = HalfToFloat(static_cast<uint16_t>(both & 0xffffu));
    pair.v[1] = HalfToFloat(static_cast<uint16_t>(both >> 16));
  } else {
    TRINE_UNROLL
    for (uint32_t i = 0; i < 2; ++i) {
      if (at + 32 * i >= k) continue;
      if constexpr (kType == quant::Type::kF32) {
        pair.v[i] = reinterpret_cast<const float*>(row)[at + 32 * i];
      } else {
        const uint16_t half = reinterpret_cast<const uint16_t*>(row)[at + 32 * i];
        pair.v[i] = kType == quant::Type::kF16 ? HalfToFloat(half) : quant::Bf16ToF32(half);
      }
    }
  }
  return pair;
}

// Loads a lane's part of a stage: values of kLoads rows and of as many columns.
template <quant::Type kType, bool kPacked>
class Loader {
 public:
  TRINE_DEVICE Loader(const GemmArgs& args, const TileColumns& tile, uint32_t first_row)
      : k_(args.k), lane_(ThreadX() % kLanes) {
    const uint32_t first = ThreadX() / kLanes * kLoads;
    TRINE_UNROLL
    for (uint32_t i = 0; i < kLoads; ++i) {
      rows_[i] = WeightRow(args, tile, first_row + first + i);
      columns_[i] = args.x + OffsetOf(args.x_stride, ColumnOf(tile, first + i), args.slots);
    }
  }

  TRINE_DEVICE void Begin(uint32_t at) {
    at_ = at;
    if (at >= k_) return;
    TRINE_UNROLL
    for (uint32_t i = 0; i < kLoads; ++i) {
      w_[i] = LoadPair<kType, kPacked>(rows_[i], k_, at + lane_);
      x_[i] = LoadPair<quant::Type::kF32, false>(columns_[i], k_, at + lane_);
    }
  }
  TRINE_DEVICE void End(Stages* stages, int to) {
    if (at_ >= k_) return;
    const uint32_t thread = ComputedHere(ThreadX());
    const uint32_t lane = thread % kLanes, row = thread / kLanes * kLoads;
    TRINE_UNROLL
    for (uint32_t i = 0; i < kLoads; ++i) {
      TRINE_UNROLL
      for (uint32_t j = 0; j < 2; ++j) {
        stages->w[to][row + i][lane + 32 * j] = w_[i].v[j];
        stages->x[to][row + i][lane + 32 * j] = x_[i].v[j];
      }
    }
  }

 private:
  uint32_t k_, lane_, at_ = 0;
  const std::byte* rows_[kLoads];
  const std::byte* columns_[kLoads];
  Pair w_[kLoads]{}, x_[kLoads]{};
};

// Joins the sums, so that lane i gets results 2 i and 2 i + 1 of 64. At every step each half of the
// lanes keeps the sums of one half of the results and gives the other half away.
template <int kCount>
TRINE_DEVICE void Join(float (&sums)[64], uint32_t lane) {
  if constexpr (kCount > 1) {
    constexpr int kHalf = kCount / 2;  // results that are kept; lanes kHalf / 2 apart exchange
    const bool upper = (lane & (kHalf / 2)) != 0;
    TRINE_UNROLL
    for (int i = 0; i < kHalf; ++i) {
      // Chooses between values: choosing between addresses would keep clang from using registers.
      const float first = sums[i], second = sums[i + kHalf];
      const float kept = upper ? second : first, given = upper ? first : second;
      sums[i] = kept + LaneXor(given, kHalf / 2);
    }
    if constexpr (kHalf > 2) Join<kHalf>(sums, lane);
  }
}

template <quant::Type kType, bool kPacked>
TRINE_KERNEL(kThreads)
FloatGemmKernel(GemmArgs args) {
  BeginAfterEarlier();
  TRINE_SHARED(Stages, shared);
  const uint32_t lane = ThreadX() % kLanes;
  const uint32_t row = RowOfGroup(ThreadX()), column = ColumnOfGroup(ThreadX());
  TileColumns tile;
  if (!FindColumns(args, BlockX(), kColumns, &tile)) return;

  for (uint32_t first_row = BlockY() * kRows; first_row < args.n; first_row += GridY() * kRows) {
    float sums[64];  // column by column
    TRINE_UNROLL
    for (int i = 0; i < 64; ++i) sums[i] = 0.0f;
    Loader<kType, kPacked> loader(args, tile, first_row);
    int at = 0;
    SyncBlock();  // all threads have read the rows before
    if (!tile.zeros) {
      loader.Begin(0);
      loader.End(&shared, 0);
    }
    for (uint32_t first = 0; first < args.k && !tile.zeros; first += kDepth) {
      SyncBlock();
      loader.Begin(first + kDepth);
      if (column < tile.count) {
        TRINE_UNROLL_MORE
        for (uint32_t j = 0; j < kDepth; j += kLanes) {
          float w[8], x[8];
          TRINE_UNROLL
          for (int i = 0; i < 8; ++i) {
            w[i] = shared.w[at][row + static_cast<uint32_t>(i)][j + lane];
            x[i] = shared.x[at][column + static_cast<uint32_t>(i)][j + lane];
          }
          TRINE_UNROLL
          for (int i = 0; i < 64; ++i) sums[i] = sums[i] + w[i % 8] * x[i / 8];
        }
      }
      loader.End(&shared, at ^ 1);
      at ^= 1;
    }
    const uint32_t thread = ComputedHere(ThreadX());
    Join<64>(sums, thread % kLanes);
    const uint32_t c = ColumnOfGroup(thread) + thread % kLanes / 4;
    TRINE_UNROLL
    for (uint32_t j = 0; j < 2; ++j) {
      const uint32_t r = first_row + RowOfGroup(thread) + thread % 4 * 2 + j;
      if (r < args.n && c < tile.count) {
        ColumnOfY(args, tile, c)[r] = Finish(args, tile, r, sums[j]);
      }
    }
  }
}

}  // namespace

GemmKernel FloatGemm(quant::Type type, bool packed) {
  using quant::Type;
  switch (type) {
    case Type::kF32:
      return packed ? nullptr : &FloatGemmKernel<Type::kF32, false>;
    case Type::kF16:
      return packed ? &FloatGemmKernel<Type::kF16, true> : &FloatGemmKernel<Type::kF16, false>;
    case Type::kBF16:
      return packed ? nullptr : &FloatGemmKernel<Type::kBF16, false>;
    default:
      return nullptr;
  }
}

}  // namespace trine::hip
