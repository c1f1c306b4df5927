// Norms rows that are too long for a block's registers: reads a row again for every sum, and for
// the result.
#include <algorithm>

#include "kernels/hip/ops/norm_row.h"

namespace trine::hip {
namespace {

constexpr uint32_t kThreads = 1024;
constexpr uint32_t kTile = 2;  // vectors of a thread that are added up at a time

struct LongShared {
  Float4 terms[kTile * kThreads];
  float result;
};

// Adds up a row. `four(k)` returns values k to k + 3, and +0 after the end. All threads get
// finish(sum).
template <class Four, class Finish>
TRINE_DEVICE float SumRow(uint32_t n, LongShared* shared, const Four& four, const Finish& finish) {
  const uint32_t t = ThreadX();
  float sum = 0.0f;  // of a class
  for (uint32_t base = 0; base < n; base += 4 * kTile * kThreads) {
    TRINE_UNROLL
    for (uint32_t j = 0; j < kTile; ++j) {
      shared->terms[j * kThreads + t] = four(base + 4 * (j * kThreads + t));
    }
    SyncBlock();
    if (t < kLanes) {
      const uint32_t left = TermsOf(n - base);
      constexpr uint32_t kMost = 4 * kTile * kThreads / kLanes;
      sum = AddTerms<16>(sum, reinterpret_cast<const float*>(shared->terms), t,
                         left < kMost ? left : kMost);
    }
    SyncBlock();
  }
  if (t < kLanes) {
    const float result = finish(JoinClasses(sum));
    if (t == 0) shared->result = result;
  }
  SyncBlock();
  return shared->result;
}

template <bool kWide>
TRINE_KERNEL(kThreads)
LongNormKernel(NormArgs args) {
  BeginAfterEarlier();
  TRINE_SHARED(LongShared, shared);
  const uint32_t n = args.n;
  for (int64_t r = BlockX(); r < args.rows; r += GridX()) {
    const NormRow at = NormRowAt(args, r);
    const auto first_read = [&](uint32_t k) {
      Float4 v = ReadFour<kWide>(at.x, k, n);
      if (at.addend == nullptr) return v;
      v = Canon(Sum(v, ReadFour<kWide>(at.addend, k, n)));
      WriteFour<kWide>(v, at.sum, k, n);
      return v;
    };
    const float* kept = at.addend != nullptr ? at.sum : at.x;
    float mean = 0.0f, scale = 0.0f;
    const auto value = [&](uint32_t k) {
      const Float4 v = ReadFour<kWide>(kept, k, n);
      return args.centred ? Centre(v, mean, k, n) : v;
    };
    const auto to_scale = [&](float sum) { return ScaleOf(sum, args); };
    if (args.centred) {
      mean = SumRow(n, &shared, first_read, [&](float sum) { return MeanOf(sum, args); });
      scale = SumRow(
          n, &shared,
          [&](uint32_t k) {
            const Float4 v = value(k);
            return Times(v, v);
          },
          to_scale);
    } else {
      scale = SumRow(
          n, &shared,
          [&](uint32_t k) {
            const Float4 v = first_read(k);
            return Times(v, v);
          },
          to_scale);
    }
    // All lanes of a group make the same number of rounds.
    for (uint32_t base = 0; base < n; base += 4 * kThreads) {
      const uint32_t k = base + 4 * ThreadX();
      Float4 v = Scaled(value(k), scale);
      if (args.weight != nullptr) v = Times(v, ReadFour<kWide>(args.weight, k, n));
      if (args.bias != nullptr) v = Sum(v, ReadFour<kWide>(args.bias, k, n));
      v = Canon(v);
      if (at.y != nullptr) WriteFour<kWide>(v, at.y, k, n);
      if (args.to.present()) QuantizeBlock(args.to, v, r, k / 32, k / 4 % 8, k < n);
    }
  }
}

}  // namespace

Launch LongNormLaunch(const NormArgs& args, bool wide) {
  return MakeLaunch(wide ? LongNormKernel<true> : LongNormKernel<false>,
                    {static_cast<uint32_t>(std::min<int64_t>(args.rows, 0x7fffffff))}, {kThreads},
                    args);
}

}  // namespace trine::hip
