#include <cstdint>

#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/weights/float_weights.h"

namespace trine::hip {

// Multiplies float weights with columns of f32. Each lane of a group adds up one class of values.
//
// If rows are aligned, a lane loads several neighbouring weights at once, and the lanes then
// exchange them. The lanes exchange weights and not activations, because one exchange then serves
// all columns.
template <class W, int kColumns, int kRows, int kDepth>
TRINE_KERNEL(kGemvThreads)
FloatGemvKernel(GemvArgs args) {
  constexpr uint32_t kRun = W::kValues * kLanes;
  const auto lane = static_cast<int>(ThreadX() % kLanes);
  const auto of_class = static_cast<uint32_t>(W::ClassOf(lane));
  const GemvPart part = PartOf(args);
  const uint32_t block = BlockX() - part.first_block;
  const uint32_t row = (block * kGemvSlots + ThreadX() / kLanes) * kRows;
  LetNextStart();
  if (!args.constant || args.ids != nullptr) AwaitEarlier();
  if (row >= part.n) return;  // the same for all lanes of the group
  const uint32_t runs = args.k / kRun;

  for (uint32_t first = BlockY() * kColumns; first < args.columns; first += GridY() * kColumns) {
    const GemvPlace place = PlaceOf(args, part, first);
    const uint32_t columns = args.columns - first;  // those left, perhaps more than kColumns
    const std::byte* rows[kRows];
    const float* x[kColumns];
    float sum[kRows][kColumns];
    TRINE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const uint32_t at = row + static_cast<uint32_t>(r);
      rows[r] = place.weights + (at < part.n ? at : part.n - 1) * part.row_stride;
      TRINE_UNROLL
      for (int c = 0; c < kColumns; ++c) sum[r][c] = 0.0f;
    }
    TRINE_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      x[c] = RowOfX(args,
                    static_cast<uint32_t>(c) < columns ? first + static_cast<uint32_t>(c) : first);
    }

    // Takes whole runs, and loads the next runs ahead. Beyond the last run, loads it again.
    typename W::Raw next[kDepth][kRows];
    const auto load = [&](uint32_t run) {
      TRINE_UNROLL
      for (int u = 0; u < kDepth; ++u) {
        const uint32_t at = run + static_cast<uint32_t>(u);
        TRINE_UNROLL
        for (int r = 0; r < kRows; ++r) {
          next[u][r] = W::Load(rows[r], (at < runs ? at : runs - 1) * kRun, lane);
        }
      }
    };
    if (runs > 0) load(0);
    AwaitEarlier();
    for (uint32_t run = 0; run < runs; run += kDepth) {
      typename W::Raw now[kDepth][kRows];
      TRINE_UNROLL
      for (int u = 0; u < kDepth; ++u) {
        TRINE_UNROLL
        for (int r = 0; r < kRows; ++r) now[u][r] = next[u][r];
      }
      if (run + kDepth < runs) load(run + kDepth);
      TRINE_UNROLL
      for (int u = 0; u < kDepth; ++u) {
        if (run + static_cast<uint32_t>(u) < runs) {  // the same for all lanes
          const uint32_t at = (run + static_cast<uint32_t>(u)) * kRun + of_class;
          float w[kRows][W::kValues];
          TRINE_UNROLL
          for (int r = 0; r < kRows; ++r) W::Spread(now[u][r], lane, w[r]);
          TRINE_UNROLL
          for (int i = 0; i < W::kValues; ++i) {
            TRINE_UNROLL
            for (int c = 0; c < kColumns; ++c) {
              const float value = x[c][at + 32 * static_cast<uint32_t>(i)];
              TRINE_UNROLL
              for (int r = 0; r < kRows; ++r) sum[r][c] = sum[r][c] + w[r][i] * value;
            }
          }
        }
      }
    }
    // The rest of the row, value by value.
    for (uint32_t at = runs * kRun + of_class; at < args.k; at += kLanes) {
      TRINE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const float w = W::One(rows[r], args.k, at);
        TRINE_UNROLL
        for (int c = 0; c < kColumns; ++c) sum[r][c] = sum[r][c] + w * x[c][at];
      }
    }

    TRINE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      TRINE_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        TRINE_UNROLL
        for (int step = 0; step < 5; ++step) {
          sum[r][c] = sum[r][c] + LaneXor(sum[r][c], W::JoinMask(step));
        }
        const uint32_t at = row + static_cast<uint32_t>(r);
        if (lane == (r * kColumns + c) % kLanes && at < part.n &&
            static_cast<uint32_t>(c) < columns) {
          Store(args, part, place, at, first + static_cast<uint32_t>(c), sum[r][c]);
        }
      }
    }
  }
}

template <class W, int kColumns, int kRows, int kDepth>
Launch FloatGemvOf(GemvArgs args) {
  const Dim grid = GemvGrid(kRows, kColumns, &args);
  return MakeLaunch(FloatGemvKernel<W, kColumns, kRows, kDepth>, grid, {kGemvThreads}, args);
}

template <class W>
Launch FloatGemvLaunch(const GemvArgs& args) {
  switch (GemvColumns(args)) {
    case 1:
      return FloatGemvOf<W, 1, 1, 4>(args);
    case 2:
      return FloatGemvOf<W, 2, 2, 2>(args);
    case 4:
      return FloatGemvOf<W, 4, 2, 2>(args);
    default:
      return FloatGemvOf<W, 8, 2, 2>(args);
  }
}

using quant::Type;

Launch FloatGemv(Type type, bool wide, const GemvArgs& args) {
  switch (type) {
    case Type::kF32:
      return wide ? FloatGemvLaunch<VectorFloats<Type::kF32>>(args)
                  : FloatGemvLaunch<ScalarFloats<Type::kF32>>(args);
    case Type::kF16:
      return wide ? FloatGemvLaunch<VectorFloats<Type::kF16>>(args)
                  : FloatGemvLaunch<ScalarFloats<Type::kF16>>(args);
    case Type::kBF16:
      return wide ? FloatGemvLaunch<VectorFloats<Type::kBF16>>(args)
                  : FloatGemvLaunch<ScalarFloats<Type::kBF16>>(args);
    default:
      return {};
  }
}

Launch PackedF16Gemv(const GemvArgs& args) { return FloatGemvLaunch<PackedHalves>(args); }

}  // namespace trine::hip
