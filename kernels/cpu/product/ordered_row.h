// Multiplies a row of halves, f16 or bf16, with a column of floats, with instructions in an order
// that is chosen here (ordered.h). The results are those of dot_float.cc.

#pragma once

#include <cstdint>

#include "kernels/cpu/simd/ordered.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/quant/block_types.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// The kinds of instructions. An index stands for the lower or the upper four of eight weights.
enum class RowDo {
  // Loads, and what costs no more
  kAskAhead,
  kWeights,
  kActivations,
  kClear,
  // Arithmetic
  kWiden,
  kTerm,
  kAdd,
};
constexpr bool IsLoad(RowDo what) { return what <= RowDo::kClear; }

// The distance at which weights are prefetched. A processor's own prefetching stops at the ends of
// the file's small pages. One thread read 18.5 GB/s of an F16 model without prefetching here, 19.2
// one page ahead, and 20.2 two or more pages ahead.
constexpr int kAskAheadBytes = 8192;

// Keeps denormal halves from being flushed while it lives. A program may have turned flushing on
// (FPCR.FZ16); then products of halves flush, and conversions do not.
class SmallHalvesCount {
 public:
  SmallHalvesCount() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    if ((saved_ & kFlush) != 0) Set(saved_ & ~kFlush);
  }
  ~SmallHalvesCount() {
    if ((saved_ & kFlush) != 0) Set(saved_);
  }
  SmallHalvesCount(const SmallHalvesCount&) = delete;
  SmallHalvesCount& operator=(const SmallHalvesCount&) = delete;

 private:
  static constexpr uint64_t kFlush = 1 << 19;
  static void Set(uint64_t value) { asm volatile("msr fpcr, %0" : : "r"(value) : "memory"); }

  uint64_t saved_;
};

// The 32 partial sums of a row.
struct RowSums {
  float32x4_t of[8];
};

// Computes the terms of kValues weights of a row, in units of eight. kAsks: prefetches, for weights
// that are in no cache yet.
template <quant::Type kType, int kValues, bool kAsks>
struct OrderedRow {
  using Do = RowDo;
  static constexpr int kUnits = kValues / 8;

  // Returns whether `half` is converted by multiplying it by one and adding the product to zero:
  // Neoverse V1 converts four halves in a cycle, but multiplies sixteen. (A -0 becomes +0, which
  // changes no sum that began with +0.)
  static constexpr bool IsByProduct(int half) { return kType == quant::Type::kF16 && half == 1; }

  // Returns a unit's instructions with their times, which set the distances from the instructions
  // whose results they need. Of some dozens of choices these took the least time.
  static constexpr TimedList<Do> TimesOf(int unit) {
    TimedList<Do> list;
    if (kAsks && unit % 4 == 0) list.Add(Do::kAskAhead, 0, -24);  // a line of 64 bytes
    list.Add(Do::kWeights, 0, -24);
    for (int half = 0; half < 2; ++half) {
      const double widen = 3 * half;
      if (IsByProduct(half)) list.Add(Do::kClear, half, widen - 0.5);
      list.Add(Do::kWiden, half, widen);
      list.Add(Do::kActivations, half, widen + 4);
      list.Add(Do::kTerm, half, widen + 16);
      list.Add(Do::kAdd, half, widen + 26);
    }
    return list;
  }
  static constexpr auto kOrder = Order<Do, kUnits>::Of(TimesOf);

  // Returns whether each instruction comes after the instructions whose results it needs, and the
  // terms of each class are added in order.
  static constexpr bool IsInOrder() {
    bool done[kUnits][static_cast<int>(Do::kAdd) + 1][2] = {};
    for (int i = 0; i < kOrder.count; ++i) {
      const auto& entry = kOrder.entries[i];
      const auto is_done = [&](Do what, int index) {
        return done[entry.unit][static_cast<int>(what)][index];
      };
      const int half = entry.index;
      bool right = true;
      if (entry.what == Do::kWiden) {
        right = is_done(Do::kWeights, 0) && (!IsByProduct(half) || is_done(Do::kClear, half));
      } else if (entry.what == Do::kTerm) {
        right = is_done(Do::kWiden, half) && is_done(Do::kActivations, half);
      } else if (entry.what == Do::kAdd) {
        constexpr int kAdd = static_cast<int>(Do::kAdd);
        right = is_done(Do::kTerm, half) && (entry.unit < 4 || done[entry.unit - 4][kAdd][half]);
      }
      if (!right) return false;
      done[entry.unit][static_cast<int>(entry.what)][half] = true;
    }
    return true;
  }

  struct Unit {
    uint16x8_t halves;
    float32x4_t a[2], w[2], term[2];
  };

  const uint16_t* from;
  const float* x;
  uint16x8_t constant;  // f16: the factor 1; bf16: the lower bits, 0
  RowSums sums;
  Unit units[kUnits];

  template <Do kWhat, int kHalf, int kUnit>
  [[gnu::always_inline]] void Run() {
    Unit& u = units[kUnit];
    if constexpr (kWhat == Do::kAskAhead) {
      AskFor<kAskAheadBytes + 16 * kUnit>(from);
    } else if constexpr (kWhat == Do::kWeights) {
      u.halves = LoadSixteen<uint16x8_t>(from + 8 * kUnit);
    } else if constexpr (kWhat == Do::kActivations) {
      u.a[kHalf] = LoadSixteen<float32x4_t>(x + 8 * kUnit + 4 * kHalf);
    } else if constexpr (kWhat == Do::kClear) {
      u.w[kHalf] = vreinterpretq_f32_s32(Zeros());
    } else if constexpr (kWhat == Do::kWiden) {
      if constexpr (kType == quant::Type::kBF16) {
        u.w[kHalf] = InterleaveHalf<kHalf>(constant, u.halves);
      } else if constexpr (IsByProduct(kHalf)) {
        u.w[kHalf] = AddHalfProducts<kHalf>(u.w[kHalf], u.halves, constant);
      } else {
        u.w[kHalf] = HalfToFloats<kHalf>(u.halves);
      }
    } else if constexpr (kWhat == Do::kTerm) {
      u.term[kHalf] = Multiply(u.w[kHalf], u.a[kHalf]);
    } else {
      static_assert(kWhat == Do::kAdd);
      float32x4_t& sum = sums.of[(2 * kUnit + kHalf) % 8];
      sum = Add(sum, u.term[kHalf]);
    }
  }
};

// Adds the terms of kValues weights, a multiple of 32, to the sums.
template <quant::Type kType, int kValues, bool kAsks>
TRINE_INLINE RowSums AddRowTerms(const uint16_t* w, const float* x, RowSums sums) {
  constexpr uint16_t kOneAsHalf = 0x3c00;
  using Row = OrderedRow<kType, kValues, kAsks>;
  static_assert(Row::IsInOrder() && kValues % 32 == 0);
  Row row;
  row.from = w;
  row.x = x;
  row.constant = vdupq_n_u16(kType == quant::Type::kF16 ? kOneAsHalf : 0);
  row.sums = sums;
  RunInOrder(row);
  return row.sums;
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
