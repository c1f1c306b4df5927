#include "kernels/hip/norm.h"

#include <algorithm>
#include <type_traits>

#include "kernels/hip/norm_row.h"
#include "kernels/hip/walk.h"

namespace trine::hip {
namespace {

// A row that a block keeps in its registers, kKept vectors of four values a thread; sums go through
// shared memory. Vector j of thread t begins at value 4 * (j * threads + t).
//
// In a decoded token there is one row, and what counts is how long one block takes: many threads,
// so that all of the row is on its way at once, and then one group of lanes that adds. Of many rows
// it is how many sums are under way on a multiprocessor: fewer threads, which keep more each.
// kUsual: what a thread keeps where there are threads enough; kBlocks: of a multiprocessor;
// kBatch: terms of a sum that are on their way while as many are added.
struct FewRows {
  [[maybe_unused]] static constexpr uint32_t kThreads = 1024, kKept = 2, kUsual = 1, kBlocks = 1,
                                             kBatch = kFewRegisters ? 4 : 16;
};
struct ManyRows {
  [[maybe_unused]] static constexpr uint32_t kThreads = 512, kKept = 4, kUsual = 4, kBlocks = 2,
                                             kBatch = 8;
};
constexpr int64_t kMostKept = 8192;  // values, of both
constexpr int64_t kFew = 64;         // rows

template <class Shape>
struct NormShared {
  Float4 terms[Shape::kThreads * Shape::kKept];
  float result;
};

// The sum of the row or of its squares in the contract's order, made into `finish` of it. All
// threads get that.
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
  const auto any = [&](uint32_t j) { return 4 * j * threads < n; };  // of vectors j of a block
  LetNextStart();
  if (kEarly && args.constant) {
    // Brought near, not into registers: there are none to spare.
    for (uint32_t k = 32 * ThreadX(); k < n; k += 32 * threads) {
      if (args.weight != nullptr) Prefetch(args.weight + k);
      if (args.bias != nullptr) Prefetch(args.bias + k);
    }
  }
  AwaitEarlier();
  for (int64_t r = BlockX(); r < args.rows; r += GridX()) {
    const NormRow at = NormRowAt(args, r);
    // All reads before the first write: they are under way together. Of many rows the weights are
    // read late, for want of registers: other rows' sums are under way meanwhile.
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
      if (used.dims[i] == 1) used.strides[i] = 0;  // whatever it was
    }
    wide &= !t->present() || RowsAligned(used, 16);
  }
  if (n > kMostKept) return LongNormLaunch(args, wide);
  return args.rows <= kFew ? KeptNormLaunch<FewRows>(args, wide)
                           : KeptNormLaunch<ManyRows>(args, wide);
}

}  // namespace trine::hip
