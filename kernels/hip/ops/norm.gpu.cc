#include <algorithm>
#include <type_traits>

#include "kernels/hip/ops/column_norm.h"
#include "kernels/hip/ops/norm_row.h"
#include "kernels/hip/ops/ops.h"
#include "kernels/hip/ops/walk.h"

namespace trine::hip {
namespace {

// A block keeps a row in its registers, kKept vectors of four values a thread; sums go through
// shared memory. Vector j of thread t begins at value 4 * (j * threads + t).
//
// There are two shapes. FewRows is for decoding, where a token has one row and the time of one
// block decides: the block has enough threads to load the whole row at once, and one group of lanes
// then adds. ManyRows lets a multiprocessor compute several sums at the same time: it has fewer
// threads, and each keeps more vectors.
// kUsual: the vectors that a thread keeps if there are enough threads. kBlocks: the blocks on a
// multiprocessor. kBatch: the terms of a sum that are loaded while the same number of earlier terms
// is added.
struct FewRows {
  [[maybe_unused]] static constexpr uint32_t kThreads = 1024, kKept = 2, kUsual = 1, kBlocks = 1,
                                             kBatch = kFewRegisters ? 4 : 16;
};
struct ManyRows {
  [[maybe_unused]] static constexpr uint32_t kThreads = 512, kKept = 4, kUsual = 4, kBlocks = 2,
                                             kBatch = 8;
};
constexpr int64_t kMostKept = 8192;  // values that either shape can keep
constexpr int64_t kFew = 64;         // the most rows for FewRows

template <class Shape>
struct NormShared {
  Float4 terms[Shape::kThreads * Shape::kKept];
  float result;
};

// Adds up the row or its squares in the contract's order. All threads get finish(sum).
template <class Shape, class Finish>
TRINE_DEVICE float SumRow(const Float4 (&row)[Shape::kKept], bool squares, uint32_t n,
                          NormShared<Shape>* shared, const Finish& finish) {
  const uint32_t threads = BlockSizeX(), t = ComputedHere(ThreadX());
  TRINE_UNROLL
  for (uint32_t j = 0; j < Shape::kKept; ++j) {
    if (4 * j * threads >= n) continue;
    shared->terms[j * threads + t] = squares ? Times(row[j], row[j]) : row[j];
  }
  SyncBlock();
  if (t < kLanes) {
    const auto* terms = reinterpret_cast<const float*>(shared->terms);
    const float sum = JoinClasses(AddTerms<Shape::kBatch>(0.0f, terms, t, TermsOf(n)));
    const float result = finish(sum);
    if (t == 0) shared->result = result;
  }
  SyncBlock();
  return shared->result;
}

template <class Shape, bool kWide>
TRINE_KERNEL_RESIDENT(Shape::kThreads, Shape::kBlocks)
NormKernel(NormArgs args) {
  TRINE_SHARED(NormShared<Shape>, shared);
  constexpr uint32_t kKept = Shape::kKept;
  constexpr bool kEarly = std::is_same_v<Shape, FewRows>;
  const uint32_t threads = BlockSizeX(), n = args.n;
  const auto place = [&](uint32_t j) { return 4 * (j * threads + ComputedHere(ThreadX())); };
  // Returns whether the block has vectors j.
  const auto any = [&](uint32_t j) { return 4 * j * threads < n; };
  LetNextStart();
  if (kEarly && args.constant) {
    // Prefetches: there are no registers to spare for loads.
    for (uint32_t k = 32 * ThreadX(); k < n; k += 32 * threads) {
      if (args.weight != nullptr) Prefetch(args.weight + k);
      if (args.bias != nullptr) Prefetch(args.bias + k);
    }
  }
  AwaitEarlier();
  for (int64_t r = BlockX(); r < args.rows; r += GridX()) {
    const NormRow at = NormRowAt(args, r);
    // All reads come before the first write, so that they are under way together. With many rows
    // the weights are read late, for lack of registers, while other rows are being summed.
    Float4 row[kKept], addend[kKept], weight[kKept], bias[kKept];
    const auto read = [&](const float* from, Float4(&to)[kKept]) {
      if (from == nullptr) return;
      TRINE_UNROLL
      for (uint32_t j = 0; j < kKept; ++j) {
        if (any(j)) to[j] = ReadFour<kWide>(from, place(j), n);
      }
    };
    read(at.x, row);
    read(at.addend, addend);
    if (kEarly) read(args.weight, weight);
    if (kEarly) read(args.bias, bias);
    if (at.addend != nullptr) {
      TRINE_UNROLL
      for (uint32_t j = 0; j < kKept; ++j) {
        if (!any(j)) continue;
        row[j] = Canon(Sum(row[j], addend[j]));
        WriteFour<kWide>(row[j], at.sum, place(j), n);
      }
    }
    if (args.centred) {
      const float mean =
          SumRow<Shape>(row, false, n, &shared, [&](float sum) { return MeanOf(sum, args); });
      TRINE_UNROLL
      for (uint32_t j = 0; j < kKept; ++j) {
        if (any(j)) row[j] = Centre(row[j], mean, place(j), n);
      }
    }
    const float scale =
        SumRow<Shape>(row, true, n, &shared, [&](float sum) { return ScaleOf(sum, args); });
    TRINE_UNROLL
    for (uint32_t j = 0; j < kKept; ++j) {
      if (!any(j)) continue;
      KeepLoadsBehind();
      const uint32_t k = place(j);
      if (!kEarly && args.weight != nullptr) weight[j] = ReadFour<kWide>(args.weight, k, n);
      if (!kEarly && args.bias != nullptr) bias[j] = ReadFour<kWide>(args.bias, k, n);
      Float4 v = Scaled(row[j], scale);
      if (args.weight != nullptr) v = Times(v, weight[j]);
      if (args.bias != nullptr) v = Sum(v, bias[j]);
      v = Canon(v);
      if (at.y != nullptr) WriteFour<kWide>(v, at.y, k, n);
      if (args.to.present()) QuantizeBlock(args.to, v, r, k / 32, k / 4 % 8, k < n);
    }
  }
}

template <class Shape>
Launch KeptNormLaunch(const NormArgs& args, bool wide) {
  const int64_t vectors = (args.n + int64_t{3}) / 4;
  const int64_t groups = (vectors + kLanes * Shape::kUsual - 1) / (kLanes * Shape::kUsual);
  const int64_t threads = std::min<int64_t>(groups * kLanes, Shape::kThreads);
  return MakeLaunch(wide ? NormKernel<Shape, true> : NormKernel<Shape, false>,
                    {static_cast<uint32_t>(std::min<int64_t>(args.rows, 0x7fffffff))},
                    {static_cast<uint32_t>(threads)}, args);
}

// Norms short rows, such as those of heads. A group of lanes has a row, and lane i has the values
// of class i of its sums, so nothing goes through shared memory.
constexpr int kThreads = 128;
constexpr uint32_t kGroups = kThreads / kLanes;
constexpr uint32_t kKept = kMostShort / kLanes;

TRINE_KERNEL(kThreads) ShortNormKernel(NormArgs args) {
  BeginAfterEarlier();
  const uint32_t lane = ThreadX() % kLanes, n = args.n;
  const auto place = [&](uint32_t j) { return j * kLanes + lane; };
  for (int64_t r = static_cast<int64_t>(BlockX()) * kGroups + ThreadX() / kLanes; r < args.rows;
       r += static_cast<int64_t>(GridX()) * kGroups) {
    const NormRow at = NormRowAt(args, r);
    float row[kKept], addend[kKept], weight[kKept], bias[kKept];
    // All reads come before the first write, so that they are under way together.
    const auto read = [&](const float* from, float(&to)[kKept]) {
      if (from == nullptr) return;
      TRINE_UNROLL
      for (uint32_t j = 0; j < kKept; ++j) to[j] = place(j) < n ? from[place(j)] : 0.0f;
    };
    read(at.x, row);
    read(at.addend, addend);
    read(args.weight, weight);
    read(args.bias, bias);
    if (at.addend != nullptr) {
      TRINE_UNROLL
      for (uint32_t j = 0; j < kKept; ++j) {
        row[j] = Canon(row[j] + addend[j]);
        if (place(j) < n) at.sum[place(j)] = row[j];
      }
    }
    // +0 after the end changes no sum.
    if (args.centred) {
      float sum = 0.0f;
      TRINE_UNROLL
      for (uint32_t j = 0; j < kKept; ++j) sum = sum + row[j];
      const float mean = MeanOf(JoinClasses(sum), args);
      TRINE_UNROLL
      for (uint32_t j = 0; j < kKept; ++j) row[j] = place(j) < n ? Canon(row[j] - mean) : 0.0f;
    }
    float squares = 0.0f;
    TRINE_UNROLL
    for (uint32_t j = 0; j < kKept; ++j) squares = squares + row[j] * row[j];
    const float scale = ScaleOf(JoinClasses(squares), args);
    TRINE_UNROLL
    for (uint32_t j = 0; j < kKept; ++j) {
      if (place(j) >= n || at.y == nullptr) continue;
      float y = row[j] * scale;
      if (args.weight != nullptr) y = y * weight[j];
      if (args.bias != nullptr) y = y + bias[j];
      at.y[place(j)] = Canon(y);
    }
  }
}

}  // namespace

Launch NormLaunch(const Norm& norm) {
  const int64_t n = norm.x.dims[0];
  NormArgs args;
  args.x = RowsOf(norm.x);
  args.addend = RowsOf(norm.addend);
  args.sum = RowsOf(norm.sum);
  args.y = RowsOf(norm.y);
  args.weight = reinterpret_cast<const float*>(norm.weight.data);
  args.bias = reinterpret_cast<const float*>(norm.bias.data);
  args.to = norm.quantized;
  args.rows = n == 0 ? 0 : norm.x.rows();
  args.n1 = norm.x.dims[1];
  args.n2 = norm.x.dims[2];
  args.n = static_cast<uint32_t>(n);
  args.inverse_n = quant::Recip(static_cast<float>(n));
  args.eps = norm.eps;
  args.centred = norm.centred;
  args.constant = (!norm.weight.present() || norm.weight.constant) &&
                  (!norm.bias.present() || norm.bias.constant);
  if (n <= kMostShort && !norm.quantized.present()) return ShortNormLaunch(args);
  bool wide = n % 4 == 0;
  for (const Tensor* t : {&norm.x, &norm.addend, &norm.sum, &norm.y, &norm.weight, &norm.bias}) {
    Tensor used = *t;
    for (size_t i = 1; i < 4; ++i) {
      if (used.dims[i] == 1) used.strides[i] = 0;  // such a stride means nothing
    }
    wide &= !t->present() || RowsAligned(used, 16);
  }
  if (n > kMostKept) return LongNormLaunch(args, wide);
  return args.rows <= kFew ? KeptNormLaunch<FewRows>(args, wide)
                           : KeptNormLaunch<ManyRows>(args, wide);
}

bool IsColumnNorm(const Norm& norm) {
  const auto aligned = [](const Tensor& t) {
    return reinterpret_cast<uintptr_t>(t.data) % sizeof(Float4) == 0;
  };
  const int64_t n = norm.x.dims[0];
  return !norm.centred && n > 0 && n % 32 == 0 && n <= kMostNormed && norm.x.rows() == 1 &&
         norm.weight.present() && !norm.bias.present() && !norm.addend.present() &&
         !norm.y.present() && norm.quantized.present() && aligned(norm.x) && aligned(norm.weight);
}

ColumnNorm ColumnNormOf(const Norm& norm) {
  ColumnNorm of;
  of.x = reinterpret_cast<const float*>(norm.x.data);
  of.weight = reinterpret_cast<const float*>(norm.weight.data);
  of.inverse_n = quant::Recip(static_cast<float>(norm.x.dims[0]));
  of.eps = norm.eps;
  of.constant = norm.weight.constant;
  return of;
}

Launch ShortNormLaunch(const NormArgs& args) {
  const int64_t blocks = (args.rows + kGroups - 1) / kGroups;
  return MakeLaunch(ShortNormKernel, {static_cast<uint32_t>(std::min<int64_t>(blocks, 0x7fffffff))},
                    {kThreads}, args);
}

}  // namespace trine::hip
