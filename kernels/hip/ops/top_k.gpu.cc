// Implements TopKLaunch of ops.h: a block has a row.
//
// Each thread takes the best of its own values. The k-th best of these is a bound that at least k
// values reach. Only the k threads that reach it can have more values above it. These are mostly
// few, and are sorted. If they are many, or if k is larger than the number of threads, the exact
// bound is searched bit by bit.
#include <algorithm>

#include "kernels/hip/ops/lane_results.h"
#include "kernels/hip/ops/ops.h"
#include "kernels/hip/ops/row_index.h"
#include "kernels/hip/ops/walk.h"

namespace trine::hip {
namespace {

constexpr uint32_t kThreads = 1024;
constexpr uint32_t kFound = 4096;  // candidates in shared memory
// The number of loads of kUnit values that a thread has under way together. In such a large block,
// AMD's compilers have few registers for them.
template <int kUnit>
#if defined(TRINE_GPU_AMD)
inline constexpr uint32_t kTogether = kUnit == 4 ? 1 : 2;
#else
inline constexpr uint32_t kTogether = 4;
#endif

struct TopKArgs {
  Rows logits, ids, values;
  int64_t rows, n1, n2;
  uint32_t n, k;
};

struct TopKShared {
  uint64_t best[kThreads];
  uint64_t found[kFound];
  uint32_t count;
};

// Returns a value and its id as one number: a larger number comes earlier in the order; 0 is none.
TRINE_DEVICE uint64_t Ranked(uint32_t key, uint32_t id) {
  return static_cast<uint64_t>(key) << 32 | ~id;
}
TRINE_DEVICE uint32_t IdOf(uint64_t ranked) { return ~static_cast<uint32_t>(ranked); }
TRINE_DEVICE float ValueOfRanked(uint64_t ranked) {
  return ValueOf(static_cast<uint32_t>(ranked >> 32));
}

// Calls value(v, id), by increasing id, for this thread's values of a row: the units of kUnit
// values whose number modulo the block's size is the thread's.
template <int kUnit, class Value>
TRINE_DEVICE void ForEachOwn(const float* row, uint32_t n, const Value& value) {
  constexpr uint32_t kBatch = kTogether<kUnit>;
  const uint32_t units = n / kUnit;
  uint32_t u = ThreadX();
  TRINE_ROLLED
  for (; u + (kBatch - 1) * kThreads < units; u += kBatch * kThreads) {
    float v[kBatch][kUnit];
    TRINE_UNROLL
    for (uint32_t b = 0; b < kBatch; ++b) {
      const float* at = row + static_cast<uint64_t>(u + b * kThreads) * kUnit;
      if constexpr (kUnit == 4) {
        const Float4 four = *reinterpret_cast<const Float4*>(at);
        v[b][0] = four.x, v[b][1] = four.y, v[b][2] = four.z, v[b][3] = four.w;
      } else {
        v[b][0] = *at;
      }
    }
    TRINE_UNROLL
    for (uint32_t b = 0; b < kBatch; ++b) {
      TRINE_UNROLL
      for (uint32_t c = 0; c < kUnit; ++c) value(v[b][c], (u + b * kThreads) * kUnit + c);
    }
  }
  TRINE_ROLLED
  for (; u < units; u += kThreads) {
    for (uint32_t c = 0; c < kUnit; ++c) value(row[u * kUnit + c], u * kUnit + c);
  }
}

// Sorts m numbers, the largest first, by a bitonic network. All its comparisons point in the same
// direction, so no memory is needed after the end. Steps within 64 neighbours stay within a group
// of lanes.
template <class Load, class Store>
TRINE_DEVICE void Sort(uint32_t m, const Load& load, const Store& store) {
  uint32_t last_span = 0xffffffffu;
  const auto step = [&](uint32_t span, uint32_t pairs, const auto& low, const auto& high) {
    if (span <= 2 * kLanes && last_span <= 2 * kLanes) {
      SyncLanes();
    } else {
      SyncBlock();
    }
    last_span = span;
    TRINE_ROLLED
    for (uint32_t p = ThreadX(); p < pairs; p += kThreads) {
      const uint32_t i = low(p), j = high(p);
      if (j >= m) continue;
      const uint64_t a = load(i), b = load(j);
      if (a < b) store(i, b), store(j, a);
    }
  };
  uint32_t power = 1;
  while (power < m) power *= 2;
  // Returns p / half * size; half is a power of two, and size twice that.
  const auto block = [](uint32_t p, uint32_t half) { return (p & ~(half - 1)) * 2; };
  for (uint32_t size = 2; size <= power; size *= 2) {
    const uint32_t half = size / 2;
    step(
        size, power / 2, [&](uint32_t p) { return block(p, half) + (p & (half - 1)); },
        [&](uint32_t p) { return block(p, half) + size - 1 - (p & (half - 1)); });
    for (uint32_t j = size / 4; j > 0; j /= 2) {
      step(
          2 * j, power / 2, [&](uint32_t p) { return block(p, j) + (p & (j - 1)); },
          [&](uint32_t p) { return block(p, j) + (p & (j - 1)) + j; });
    }
  }
  SyncBlock();
}

TRINE_DEVICE void SortShared(uint64_t* numbers, uint32_t m) {
  Sort(
      m, [&](uint32_t i) { return numbers[i]; }, [&](uint32_t i, uint64_t v) { numbers[i] = v; });
}

// Keeps the values that rank at `bound` or higher, from the threads that had the first `k` of the
// sorted best. A group of lanes goes through one thread's values.
template <int kUnit>
TRINE_DEVICE void FindInBest(const float* row, uint32_t n, uint32_t k, uint64_t bound,
                             TopKShared* shared) {
  const uint32_t units = n / kUnit, lane = ThreadX() % kLanes;
  for (uint32_t i = ThreadX() / kLanes; i < k; i += kThreads / kLanes) {
    if (shared->best[i] == 0) continue;
    const uint32_t thread = IdOf(shared->best[i]) / kUnit % kThreads;
    TRINE_ROLLED
    for (uint32_t u = thread + lane * kThreads; u < units; u += kLanes * kThreads) {
      for (uint32_t c = 0; c < kUnit; ++c) {
        const uint64_t ranked = Ranked(KeyOf(row[u * kUnit + c]), u * kUnit + c);
        if (ranked < bound) continue;
        const uint32_t at = AtomicAdd(&shared->count, 1);
        if (at < kFound) shared->found[at] = ranked;
      }
    }
  }
}

// Returns the largest number that k of the row's numbers reach. All differ, so exactly k reach it.
template <int kUnit>
TRINE_DEVICE uint64_t BoundOf(const float* row, uint32_t n, uint32_t k, TopKShared* shared) {
  uint64_t bound = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const uint64_t higher = bound | uint64_t{1} << bit;
    SyncBlock();
    if (ThreadX() == 0) shared->count = 0;
    SyncBlock();
    uint32_t mine = 0;
    ForEachOwn<kUnit>(row, n,
                      [&](float v, uint32_t id) { mine += Ranked(KeyOf(v), id) >= higher; });
    if (mine != 0) (void)AtomicAdd(&shared->count, mine);
    SyncBlock();
    if (shared->count < k) continue;
    bound = higher;
    if (shared->count == k) break;
  }
  SyncBlock();
  return bound;
}

template <int kUnit>
TRINE_KERNEL_RESIDENT(kThreads, 1)
TopKKernel(TopKArgs args) {
  BeginAfterEarlier();
  TRINE_SHARED(TopKShared, shared);
  const uint32_t n = args.n, k = args.k, t = ThreadX();
  for (int64_t r = BlockX(); r < args.rows; r += GridX()) {
    const RowIndex index = IndexOfRow(r, args.n1, args.n2);
    const float* row = RowAt<const float>(args.logits, index);
    uint32_t* ids = RowAt<uint32_t>(args.ids, index);
    float* values = RowAt<float>(args.values, index);
    const auto write = [&](uint32_t at, uint64_t ranked) {
      ids[at] = IdOf(ranked);
      values[at] = ValueOfRanked(ranked);
    };
    SyncBlock();  // all threads are done with shared memory
    if (t == 0) shared.count = 0;
    if (k <= kThreads) {
      Best own = {0, 0xffffffffu};
      ForEachOwn<kUnit>(row, n, [&](float v, uint32_t id) {
        const uint32_t key = KeyOf(v);
        if (key > own.key) own = {key, id};
      });
      if (k == 1) {
        const Best of_group = BestOfLanes(own);
        if (t % kLanes == 0) shared.best[t / kLanes] = Ranked(of_group.key, of_group.id);
        SyncBlock();
        if (t < kLanes) {
          const uint64_t ranked = shared.best[t];  // there are as many groups as lanes
          const Best best = BestOfLanes({static_cast<uint32_t>(ranked >> 32), IdOf(ranked)});
          if (t == 0) write(0, Ranked(best.key, best.id));
        }
        continue;
      }
      shared.best[t] = own.key == 0 ? 0 : Ranked(own.key, own.id);
      SortShared(shared.best, kThreads);
      FindInBest<kUnit>(row, n, k, shared.best[k - 1], &shared);
      SyncBlock();
      const uint32_t count = shared.count;
      if (count <= kFound) {
        SortShared(shared.found, count);
        if (t < k) write(t, shared.found[t]);
        continue;
      }
    }
    const uint64_t bound = BoundOf<kUnit>(row, n, k, &shared);
    if (t == 0) shared.count = 0;
    SyncBlock();
    ForEachOwn<kUnit>(row, n, [&](float v, uint32_t id) {
      const uint64_t ranked = Ranked(KeyOf(v), id);
      if (ranked < bound) return;
      const uint32_t at = AtomicAdd(&shared.count, 1);
      if (k > kFound) return write(at, ranked);
      shared.found[at] = ranked;
    });
    if (k > kFound) {
      Sort(
          k, [&](uint32_t i) { return Ranked(KeyOf(values[i]), ids[i]); }, write);
      continue;
    }
    SortShared(shared.found, k);
    for (uint32_t i = t; i < k; i += kThreads) write(i, shared.found[i]);
  }
}

}  // namespace

Launch TopKLaunch(const Tensor& logits, const Tensor& ids, const Tensor& values) {
  TopKArgs args;
  args.logits = RowsOf(logits);
  args.ids = RowsOf(ids);
  args.values = RowsOf(values);
  args.n = static_cast<uint32_t>(logits.dims[0]);
  args.k = static_cast<uint32_t>(ids.dims[0]);
  args.rows = args.k == 0 ? 0 : logits.rows();
  args.n1 = logits.dims[1];
  args.n2 = logits.dims[2];
  const bool wide = args.n % 4 == 0 && RowsAligned(logits, 16);
  return MakeLaunch(wide ? TopKKernel<4> : TopKKernel<1>,
                    {static_cast<uint32_t>(std::min<int64_t>(args.rows, 0x7fffffff))}, {kThreads},
                    args);
}

}  // namespace trine::hip
