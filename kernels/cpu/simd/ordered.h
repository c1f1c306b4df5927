// Runs instructions in an order that is chosen here, because the compiler's order takes longer. For
// AArch64 with i8mm.
//
// Why: a Neoverse V1 can start four vector instructions a cycle. In a compiler's order, one chain
// of instructions after the other, it starts 2 to 2.6: instructions that wait for earlier ones seem
// to fill its queues. With several chains under way at different stages it starts 3.
//
// How: a loop's body consists of units that are alike, for example a block of some rows. Each
// instruction of a unit has a time, and each unit begins long before the previous one has ended.
// Order sorts the instructions of all units by time, at compile time. They are volatile: the
// compiler finds registers for them, but does not change their order.

#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "kernels/cpu/simd/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// --- Instructions, where they are written

// Memory of any type and alignment, as an operand.
typedef uint8_t SixteenBytes __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint8_t EightBytes __attribute__((vector_size(8), aligned(1), may_alias));
typedef uint32_t FourBytes __attribute__((aligned(1), may_alias));

// Shows AddressSanitizer the reads of the instructions below, which it does not see.
#if defined(__SANITIZE_ADDRESS__)
#define TRINE_SHOWS_READS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRINE_SHOWS_READS 1
#endif
#endif
template <typename T>
TRINE_INLINE void ShowRead(const void* from) {
#if defined(TRINE_SHOWS_READS)
  T seen;  // copied: as a template argument T has no alignment of its own
  __builtin_memcpy(&seen, from, sizeof(seen));
  asm volatile("" : : "w"(seen));
#else
  (void)from;
#endif
}

template <typename T>
TRINE_INLINE T LoadSixteen(const void* from) {
  ShowRead<SixteenBytes>(from);
  T x;
  asm volatile("ldr %q0, %1" : "=w"(x) : "m"(*static_cast<const SixteenBytes*>(from)));
  return x;
}
TRINE_INLINE float16x4_t LoadEight(const void* from) {
  ShowRead<EightBytes>(from);
  float16x4_t x;
  asm volatile("ldr %d0, %1" : "=w"(x) : "m"(*static_cast<const EightBytes*>(from)));
  return x;
}
TRINE_INLINE uint8x16_t LoadFour(const void* from) {
  ShowRead<FourBytes>(from);
  uint8x16_t x;
  asm volatile("ldr %s0, %1" : "=w"(x) : "m"(*static_cast<const FourBytes*>(from)));
  return x;
}

// Prefetches the cache line kOffset bytes after `from`. The memory need not exist.
template <int kOffset>
TRINE_INLINE void AskFor(const void* from) {
  asm volatile("prfm pldl2keep, [%0, %1]" : : "r"(from), "i"(kOffset));
}

// Instructions with one operand, or two, and a result of the same or another type.
#define TRINE_ORDERED_1(name, text, To, From) \
  TRINE_INLINE To name(From a) {              \
    To x;                                     \
    asm volatile(text : "=w"(x) : "w"(a));    \
    return x;                                 \
  }
#define TRINE_ORDERED_2(name, text, T)             \
  TRINE_INLINE T name(T a, T b) {                  \
    T x;                                           \
    asm volatile(text : "=w"(x) : "w"(a), "w"(b)); \
    return x;                                      \
  }
TRINE_ORDERED_1(UpperNibbles, "ushr %0.16b, %1.16b, #4", uint8x16_t, uint8x16_t)
TRINE_ORDERED_1(FourTimes, "shl %0.16b, %1.16b, #2", uint8x16_t, uint8x16_t)
TRINE_ORDERED_1(BytesToWords, "sxtl %0.8h, %1.8b", int16x8_t, uint8x16_t)
TRINE_ORDERED_1(WordsToInts, "sxtl %0.4s, %1.4h", int32x4_t, int16x8_t)
TRINE_ORDERED_1(ToFloats, "fcvtl %0.4s, %1.4h", float32x4_t, float16x4_t)
TRINE_ORDERED_1(ToFloats, "scvtf %0.4s, %1.4s", float32x4_t, int32x4_t)
TRINE_ORDERED_1(FourthToFloats, "scvtf %0.4s, %1.4s, #2", float32x4_t, int32x4_t)
TRINE_ORDERED_2(And, "and %0.16b, %1.16b, %2.16b", uint8x16_t)
TRINE_ORDERED_2(LookUp, "tbl %0.16b, {%1.16b}, %2.16b", uint8x16_t)
TRINE_ORDERED_2(Multiply, "mul %0.4s, %1.4s, %2.4s", int32x4_t)
TRINE_ORDERED_2(Multiply, "fmul %0.4s, %1.4s, %2.4s", float32x4_t)
TRINE_ORDERED_2(Subtract, "fsub %0.4s, %1.4s, %2.4s", float32x4_t)
TRINE_ORDERED_2(Add, "fadd %0.4s, %1.4s, %2.4s", float32x4_t)
#undef TRINE_ORDERED_1
#undef TRINE_ORDERED_2

TRINE_INLINE int32x4_t Zeros() {
  int32x4_t x;
  asm volatile("movi %0.2d, #0" : "=w"(x));
  return x;
}
template <int kLane>
TRINE_INLINE int32x4_t MultiplyByLane(int32x4_t a, int32x4_t b) {
  int32x4_t x;
  asm volatile("mul %0.4s, %1.4s, %2.s[%3]" : "=w"(x) : "w"(a), "w"(b), "i"(kLane));
  return x;
}
template <int kLane>
TRINE_INLINE float32x4_t MultiplyByLane(float32x4_t a, float32x4_t b) {
  float32x4_t x;
  asm volatile("fmul %0.4s, %1.4s, %2.s[%3]" : "=w"(x) : "w"(a), "w"(b), "i"(kLane));
  return x;
}
TRINE_INLINE int32x4_t AddProduct(int32x4_t to, int32x4_t a, int32x4_t b) {
  asm volatile("mla %0.4s, %1.4s, %2.4s" : "+w"(to) : "w"(a), "w"(b));
  return to;
}
// Adds the products of four weights of each row with four of 16 activations.
template <int kFour>
TRINE_INLINE int32x4_t AddDots(int32x4_t to, uint8x16_t w, int8x16_t a) {
  asm volatile("sdot %0.4s, %1.16b, %2.4b[%3]" : "+w"(to) : "w"(w), "w"(a), "i"(kFour));
  return to;
}
// Returns the first or the last four of eight halves, as floats.
template <int kHalf>
TRINE_INLINE float32x4_t HalfToFloats(uint16x8_t halves) {
  float32x4_t x;
  if constexpr (kHalf == 0) {
    asm volatile("fcvtl %0.4s, %1.4h" : "=w"(x) : "w"(halves));
  } else {
    asm volatile("fcvtl2 %0.4s, %1.8h" : "=w"(x) : "w"(halves));
  }
  return x;
}
// Adds the products of the first or the last four halves of `a` and `b` to floats.
template <int kHalf>
TRINE_INLINE float32x4_t AddHalfProducts(float32x4_t to, uint16x8_t a, uint16x8_t b) {
  if constexpr (kHalf == 0) {
    asm volatile("fmlal %0.4s, %1.4h, %2.4h" : "+w"(to) : "w"(a), "w"(b));
  } else {
    asm volatile("fmlal2 %0.4s, %1.4h, %2.4h" : "+w"(to) : "w"(a), "w"(b));
  }
  return to;
}
// Returns four floats with the first or the last four of `high` as their upper bits and those of
// `low` as their lower bits.
template <int kHalf>
TRINE_INLINE float32x4_t InterleaveHalf(uint16x8_t low, uint16x8_t high) {
  float32x4_t x;
  if constexpr (kHalf == 0) {
    asm volatile("zip1 %0.8h, %1.8h, %2.8h" : "=w"(x) : "w"(low), "w"(high));
  } else {
    asm volatile("zip2 %0.8h, %1.8h, %2.8h" : "=w"(x) : "w"(low), "w"(high));
  }
  return x;
}
// Returns the upper kBits bits of `upper`, and below them the uppermost bits of `lower`.
template <int kBits>
TRINE_INLINE uint8x16_t InsertBelow(uint8x16_t upper, uint8x16_t lower) {
  asm volatile("sri %0.16b, %1.16b, %2" : "+w"(upper) : "w"(lower), "i"(kBits));
  return upper;
}

// --- The order

// An instruction of a unit. The unit's own enum Do names what it does.
template <typename Do>
struct Timed {
  Do what = {};
  int index = 0;  // among several of the kind
  int unit = 0;
  double time = 0;  // counted in vector instructions
};

constexpr int kMostInstructions = 80;  // the most instructions of a unit

template <typename Do>
struct TimedList {
  Timed<Do> entries[kMostInstructions] = {};
  int count = 0;
  int vector_count = 0;  // instructions that are not loads

  constexpr void Add(Do what, int index, double time) {
    entries[count++] = {what, index, 0, time};
    if (!IsLoad(what)) ++vector_count;
  }
};

// The instructions of kUnits units, sorted by time. times_of(i) lists the instructions of unit i.
template <typename Do, int kUnits>
struct Order {
  Timed<Do> entries[kUnits * kMostInstructions] = {};
  int count = 0;

  static constexpr Order Of(auto times_of) {
    Order order;
    double begin = 0;
    for (int unit = 0; unit < kUnits; ++unit) {
      const TimedList<Do> list = times_of(unit);
      for (int i = 0; i < list.count; ++i) {
        Timed<Do> entry = list.entries[i];
        entry.unit = unit;
        entry.time += begin;
        order.Insert(entry);
      }
      begin += list.vector_count;
    }
    return order;
  }

  // Inserts the instruction after those of the same time.
  constexpr void Insert(const Timed<Do>& entry) {
    int to = count++;
    for (; to > 0 && entry.time < entries[to - 1].time; --to) entries[to] = entries[to - 1];
    entries[to] = entry;
  }
};

// Runs units.Run<what, index, unit>() for each entry of Units::kOrder.
template <typename Units, int kFrom = 0, int kTo = Units::kOrder.count>
TRINE_INLINE void RunInOrder(Units& units) {
  if constexpr (kTo - kFrom == 1) {
    constexpr auto kEntry = Units::kOrder.entries[kFrom];
    units.template Run<kEntry.what, kEntry.index, kEntry.unit>();
  } else {
    RunInOrder<Units, kFrom, (kFrom + kTo) / 2>(units);
    RunInOrder<Units, (kFrom + kTo) / 2, kTo>(units);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
