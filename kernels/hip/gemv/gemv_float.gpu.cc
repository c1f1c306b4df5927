#include <cstdint>

#include "kernels/hip/gemv/gemv.h"
#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/ops/column_norm.h"
#include "kernels/hip/weights/float_weights.h"

namespace trine::hip {

// Multiplies float weights with columns of f32. Each lane of a group adds up one class of values.
//
// If rows are aligned, a lane loads several neighbouring weights at once, and the lanes then
// exchange them. The lanes exchange weights and not activations, because one exchange then serves
// all columns.
//
// `await` waits for earlier kernels, when the first weights are on their way. Then it returns a
// function that maps a column's index to the column.
template <class W, int kColumns, int kRows, int kDepth, class Await>
TRINE_DEVICE void FloatRows(const GemvArgs& args, const GemvPart& part, uint32_t row,
                            const Await& await) {
  constexpr uint32_t kRun = W::kValues * kLanes;
  const auto lane = static_cast<int>(ThreadX() % kLanes);
  const auto of_class = static_cast<uint32_t>(W::ClassOf(lane));
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
    const auto column_at = await();
    TRINE_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      x[c] =
          column_at(static_cast<uint32_t>(c) < columns ? first + static_cast<uint32_t>(c) : first);
    }
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
TRINE_KERNEL(kGemvThreads)
FloatGemvKernel(GemvArgs args) {
  const GemvPart part = PartOf(args);
  const uint32_t block = BlockX() - part.first_block;
  const uint32_t row = (block * kGemvSlots + ThreadX() / kLanes) * kRows;
  LetNextStart();
  if (!args.constant || args.ids != nullptr) AwaitEarlier();
  if (row >= part.n) return;  // the same for all lanes of the group
  FloatRows<W, kColumns, kRows, kDepth>(args, part, row, [&] {
    AwaitEarlier();
    return [&](uint32_t column) { return RowOfX(args, column); };
  });
}

struct NormedGemvArgs {
  GemvArgs gemv;  // one product
  ColumnNorm norm;
  QuantizedColumns to;  // receives the normed column quantised, or has no values
  float* y;             // receives it, or null
};

// Each block computes the norm for itself, and writes some of its values.
TRINE_KERNEL(kGemvThreads) NormedGemvKernel(NormedGemvArgs args) {
  TRINE_DYNAMIC_SHARED(float, memory);
  const uint32_t row = BlockX() * kGemvSlots + ThreadX() / kLanes;
  LetNextStart();
  if (!args.gemv.constant) AwaitEarlier();
  const ColumnNormBlock<kGemvThreads> norm(args.norm, args.gemv.k, memory);
  const auto put = [&](uint32_t k, Float4 v) {
    const bool ours = k < args.gemv.k && k / 32 % GridX() == BlockX();
    if (ours && args.y != nullptr) *reinterpret_cast<Float4*>(args.y + k) = v;
    if (args.to.values != nullptr) QuantizeBlock(args.to, v, 0, k / 32, k / 4 % 8, ours);
  };
  FloatRows<VectorFloats<quant::Type::kF32>, 1, 1, 8>(args.gemv, args.gemv.parts[0], row, [&] {
    const float* x = norm.MakeFloats(put);
    return [x](uint32_t) { return x; };
  });
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

bool HasNormedGemv(const Norm& norm, const Product& product) {
  Norm quantized = norm;
  quantized.y = {};
  return IsColumnNorm(quantized) && product.w.type == Type::kF32 && !product.w.packed &&
         !product.ids.present() && product.w.dims[1] % kGemvSlots == 0 &&
         reinterpret_cast<uintptr_t>(product.w.data) % 16 == 0 && product.w.strides[1] % 16 == 0 &&
         reinterpret_cast<uintptr_t>(norm.y.data) % 16 == 0;
}

Launch NormedGemvLaunch(const Norm& norm, const Product& product, const DeviceShape& shape) {
  NormedGemvArgs args = {GemvArgsOf({&product, 1}, shape), ColumnNormOf(norm), norm.quantized,
                         reinterpret_cast<float*>(norm.y.data)};
  const Dim grid = GemvGrid(1, 1, &args.gemv);
  return MakeLaunch(NormedGemvKernel, grid, {kGemvThreads}, args, ColumnNormBytes(args.gemv.k));
}

Launch PackedF16Gemv(const GemvArgs& args) { return FloatGemvLaunch<PackedHalves>(args); }

}  // namespace trine::hip
