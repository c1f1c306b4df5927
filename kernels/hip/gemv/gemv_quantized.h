// Multiplies quantised weights with columns of quantised activations.
//
// Lane l of a group takes the blocks l, l + 32, .. of its rows, so a group loads neighbouring
// blocks at once. Terms then go to the lanes that add them up, each class in the order of its
// blocks. The next blocks are loaded while the previous blocks are multiplied.
#pragma once

#include <cstdint>

#include "kernels/hip/gemv/gemv_frame.h"
#include "kernels/hip/weights/weight_group.h"
#include "kernels/quant/packed_rows.h"

namespace trine::hip {

// A block of 32 quantised activations.
struct ActivationWords {
  Word4 low, high;
  float d;
  uint32_t sums;  // the sums of both halves, 16 bits each
};

template <Type kType>
TRINE_DEVICE ActivationWords LoadActivation(const QuantizedColumns& q, int64_t at) {
  constexpr GroupForm kForm = quant::FormOf(kType);
  const auto* values = reinterpret_cast<const Word4*>(q.values) + at * 2;
  ActivationWords a;
  a.low = values[0];
  a.high = values[1];
  a.d = q.scales[at];
  a.sums = kForm.zero != 0 || kForm.minimum ? q.sums[at] : 0;
  return a;
}

template <Type kType>
TRINE_DEVICE float BlockTerm(const Group<kType>& w, const ActivationWords& a) {
  constexpr GroupForm kForm = quant::FormOf(kType);
  const uint32_t* q = w.words.q;
  int32_t low = Dot4(q[0], a.low.x, Dot4(q[1], a.low.y, 0));
  low = Dot4(q[2], a.low.z, Dot4(q[3], a.low.w, low));
  int32_t high = Dot4(q[4], a.high.x, Dot4(q[5], a.high.y, 0));
  high = Dot4(q[6], a.high.z, Dot4(q[7], a.high.w, high));
  const int32_t low_sum = static_cast<int16_t>(a.sums);
  const int32_t high_sum = static_cast<int32_t>(a.sums) >> 16;
  int32_t sum;
  if constexpr (kForm.halves) {
    sum = w.words.scale[0] * (low - kForm.zero * low_sum) +
          w.words.scale[1] * (high - kForm.zero * high_sum);
  } else {
    sum = low + high - kForm.zero * (low_sum + high_sum);
    if constexpr (kForm.scaled) sum *= w.words.scale[0];
  }
  const float term = (w.d * a.d) * static_cast<float>(sum);
  if constexpr (!kForm.minimum) return term;
  const int32_t minimum = kForm.halves ? w.words.min[0] * low_sum + w.words.min[1] * high_sum
                                       : w.words.min[0] * (low_sum + high_sum);
  return term - (w.dmin * a.d) * static_cast<float>(minimum);
}

// The class sums of kResults results. Every lane brings its term of each result: lane l has class
// l % 8, and among the lanes of one class the terms of lower lanes are added first.
//
// Lanes exchange terms for four results at a time: then lane l adds up result l / 8 of the four. If
// kResults is no multiple of four, every lane adds up all results.
template <int kResults>
struct ClassSums {
  static constexpr bool kShared = kResults % 4 == 0;
  static constexpr int kSums = kShared ? kResults / 4 : kResults;
  float sum[kSums];

  TRINE_DEVICE void Clear() {
    TRINE_UNROLL
    for (int i = 0; i < kSums; ++i) sum[i] = 0.0f;
  }

  TRINE_DEVICE void Add(const float (&term)[kResults], int lane) {
    if constexpr (kShared) {
      const bool odd = (lane & 8) != 0, upper = (lane & 16) != 0;
      TRINE_UNROLL
      for (int i = 0; i < kSums; ++i) {
        const float* t = term + 4 * i;
        const float swapped0 = LaneXor(odd ? t[0] : t[1], 8);
        const float swapped1 = LaneXor(odd ? t[2] : t[3], 8);
        // low0 and low1 are terms of result r = l / 8 % 2, high0 and high1 of result r + 2: 0 is
        // from the lower lane of the pair, 1 from the higher.
        const float low0 = odd ? swapped0 : t[0], low1 = odd ? t[1] : swapped0;
        const float high0 = odd ? swapped1 : t[2], high1 = odd ? t[3] : swapped1;
        const float other0 = LaneXor(upper ? low0 : high0, 16);
        const float other1 = LaneXor(upper ? low1 : high1, 16);
        float s = sum[i] + (upper ? other0 : low0);
        s = s + (upper ? other1 : low1);
        s = s + (upper ? high0 : other0);
        sum[i] = s + (upper ? high1 : other1);
      }
    } else {
      TRINE_UNROLL
      for (int i = 0; i < kSums; ++i) {
        TRINE_UNROLL
        for (int from = 0; from < kLanes; from += 8) {
          sum[i] = sum[i] + LaneRead(term[i], from + lane % 8);
        }
      }
    }
  }

  // Joins the classes. Then each lane l for which IsAt(i, l) holds has result i in Of(i).
  TRINE_DEVICE void Join() {
    TRINE_UNROLL
    for (int i = 0; i < kSums; ++i) {
      TRINE_UNROLL
      for (int mask = 4; mask > 0; mask /= 2) sum[i] = sum[i] + LaneXor(sum[i], mask);
    }
  }
  TRINE_DEVICE float Of(int result) const { return sum[kShared ? result / 4 : result]; }
  TRINE_DEVICE static bool IsAt(int result, int lane) {
    return kShared ? lane == result % 4 * 8 : lane == result;
  }
};

// Multiplies rows of weights by at most kColumns columns, the first of which is `first`. `columns`:
// the number of columns that are left. When the first weights are on their way, calls `await`,
// which waits for earlier kernels and returns the activations.
template <class W, int kColumns, int kRows, int kDepth, class Await>
TRINE_DEVICE ClassSums<kRows * kColumns> QuantizedDots(const GemvArgs& args,
                                                       const std::byte* const (&rows)[kRows],
                                                       uint32_t first, uint32_t columns, int lane,
                                                       const Await& await) {
  constexpr Type kType = W::kWeightType;
  const uint32_t blocks = args.k / 32;
  const uint32_t passes = (blocks + kLanes - 1) / kLanes;
  const int64_t x_at = int64_t{ColumnOfX(args, first)} * blocks;

  // The weights that a lane loads at once.
  struct Blocks {
    typename W::Raw w[kDepth][kRows];
  };
  // Beyond a row's end its last block is loaded again, so that no branch comes between the loads.
  const auto block_of = [&](uint32_t pass, int u) {
    const uint32_t block = (pass + static_cast<uint32_t>(u)) * kLanes + static_cast<uint32_t>(lane);
    return block < blocks ? block : blocks - 1;
  };
  const auto load = [&](uint32_t pass) {
    Blocks b;
    TRINE_UNROLL
    for (int u = 0; u < kDepth; ++u) {
      const uint32_t block = block_of(pass, u);
      TRINE_UNROLL
      for (int r = 0; r < kRows; ++r) b.w[u][r] = W::Load(rows[r], blocks, block);
    }
    return b;
  };

  ClassSums<kRows * kColumns> sums;
  sums.Clear();
  Blocks now{}, next{};
  if (W::kAhead && passes > 0) next = load(0);
  const QuantizedColumns activations = await();
  for (uint32_t pass = 0; pass < passes; pass += kDepth) {
    if constexpr (W::kAhead) {
      now = next;
      if (pass + kDepth < passes) next = load(pass + kDepth);
    } else {
      now = load(pass);
    }
    TRINE_UNROLL
    for (int u = 0; u < kDepth; ++u) {
      if (pass + static_cast<uint32_t>(u) < passes) {  // the same for all lanes
        const uint32_t block = block_of(pass, u);
        const bool ours =
            (pass + static_cast<uint32_t>(u)) * kLanes + static_cast<uint32_t>(lane) < blocks;
        Group<kType> w[kRows];
        TRINE_UNROLL
        for (int r = 0; r < kRows; ++r) w[r] = W::Decode(now.w[u][r], block);
        float terms[kRows * kColumns];
        TRINE_UNROLL
        for (int c = 0; c < kColumns; ++c) {
          const uint32_t column = static_cast<uint32_t>(c) < columns ? static_cast<uint32_t>(c) : 0;
          const ActivationWords a =
              LoadActivation<kType>(activations, x_at + int64_t{column} * blocks + block);
          TRINE_UNROLL
          for (int r = 0; r < kRows; ++r) {
            const float term = BlockTerm(w[r], a);
            terms[r * kColumns + c] = ours ? term : 0.0f;  // 0 changes no sum
          }
        }
        sums.Add(terms, lane);
      }
    }
  }
  sums.Join();
  return sums;
}

// Computes kRows rows of a product, the first of which is `row`, for the columns of this block.
template <class W, int kColumns, int kRows, int kDepth>
TRINE_DEVICE void QuantizedRows(const GemvArgs& args, const GemvPart& part, uint32_t row,
                                int lane) {
  using Sums = ClassSums<kRows * kColumns>;
  for (uint32_t first = BlockY() * kColumns; first < args.columns; first += GridY() * kColumns) {
    const GemvPlace place = PlaceOf(args, part, first);
    const uint32_t columns = args.columns - first;
    const std::byte* rows[kRows];
    TRINE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const uint32_t at = row + static_cast<uint32_t>(r);
      rows[r] = place.weights + (at < part.n ? at : part.n - 1) * part.row_stride;
    }
    Sums sums;
    if (place.none) {
      sums.Clear();
    } else {
      sums = QuantizedDots<W, kColumns, kRows, kDepth>(args, rows, first, columns, lane, [&] {
        AwaitEarlier();
        return args.q;
      });
    }
    TRINE_UNROLL
    for (int i = 0; i < kRows * kColumns; ++i) {
      const uint32_t r = row + static_cast<uint32_t>(i / kColumns);
      const auto c = static_cast<uint32_t>(i % kColumns);
      if (Sums::IsAt(i, lane) && r < part.n && c < columns) {
        Store(args, part, place, r, first + c, sums.Of(i));
      }
    }
  }
}

template <class W, int kColumns, int kRows, int kDepth>
TRINE_KERNEL(kGemvThreads)
QuantizedGemvKernel(GemvArgs args) {
  const auto lane = static_cast<int>(ThreadX() % kLanes);
  const GemvPart part = PartOf(args);
  const uint32_t block = BlockX() - part.first_block;
  const uint32_t row = (block * kGemvSlots + ThreadX() / kLanes) * kRows;
  LetNextStart();
  if (!args.constant || args.ids != nullptr) AwaitEarlier();
  if (row >= part.n) return;  // the same for all lanes of the group
  QuantizedRows<W, kColumns, kRows, kDepth>(args, part, row, lane);
}

template <class W, int kColumns, int kRows, int kDepth>
Launch QuantizedGemvOf(GemvArgs args) {
  const Dim grid = GemvGrid(kRows, kColumns, &args);
  return MakeLaunch(QuantizedGemvKernel<W, kColumns, kRows, kDepth>, grid, {kGemvThreads}, args);
}

// Returns the launch for one form of weights. The more rows a group has, the fewer loads of
// activations it needs; but with few rows in all, a device would have too little to do. Weights in
// the file's layout have fewer variants, because unpacking them is what takes the time.
template <class W>
Launch QuantizedGemvLaunch(const GemvArgs& args) {
  switch (GemvColumns(args)) {
    case 1:
      if constexpr (W::kAhead) {
        if (args.most_rows) return QuantizedGemvOf<W, 1, 4, 1>(args);
        if (args.many_rows) return QuantizedGemvOf<W, 1, 2, 2>(args);
      }
      return QuantizedGemvOf<W, 1, 1, 2>(args);
    case 2:
      return QuantizedGemvOf<W, 2, 2, 2>(args);
    case 4:
      return QuantizedGemvOf<W, 4, 2, 1>(args);
    default:
      if constexpr (W::kAhead) {
        if (args.many_rows) return QuantizedGemvOf<W, 8, 4, 1>(args);
      }
      return QuantizedGemvOf<W, 8, 2, 1>(args);
  }
}

// Returns the launch for weights in the file's layout. `words`: all blocks are whole words.
template <Type kType>
Launch FileGemvLaunch([[maybe_unused]] bool words, const GemvArgs& args) {
  if constexpr (HasWordBlocks(kType)) {
    if (words) return QuantizedGemvLaunch<Weights<kType, Layout::kFileWords>>(args);
  }
  return QuantizedGemvLaunch<Weights<kType, Layout::kFile>>(args);
}

}  // namespace trine::hip
