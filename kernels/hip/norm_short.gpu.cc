// Norms of short rows, as those of heads: a group of lanes has a row, and lane i the values of
// class i of its sums, so that nothing goes through shared memory.
#include <algorithm>

#include "kernels/hip/norm_row.h"

namespace trine::hip {
namespace {

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
    // All reads before the first write: they are under way together.
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
    // Behind the end is +0, which changes no sum.
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

Launch ShortNormLaunch(const NormArgs& args) {
  const int64_t blocks = (args.rows + kGroups - 1) / kGroups;
  return MakeLaunch(ShortNormKernel, {static_cast<uint32_t>(std::min<int64_t>(blocks, 0x7fffffff))},
                    {kThreads}, args);
}

}  // namespace trine::hip
