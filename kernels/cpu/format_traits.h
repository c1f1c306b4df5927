// What the numbers of a quantised format are, apart from how they are packed.

#ifndef TRINE_KERNELS_CPU_FORMAT_TRAITS_H_
#define TRINE_KERNELS_CPU_FORMAT_TRAITS_H_

namespace trine::cpu_kernels {

// What an integer scale belongs to.
enum class Scales { kNone, kBlock, kHalf };
// Likewise for a minimum. kAdded: Q4_1 and Q5_1, whose min is -1.
enum class Minimums { kNone, kAdded, kBlock, kHalf };

struct FormatTraits {
  Scales scales = Scales::kNone;
  Minimums minimums = Minimums::kNone;
  bool is_signed = false;  // bytes are signed weights, plus kSignedOffset
  int offset = 0;          // of unsigned bytes
};

// How many there are to a block.
static constexpr int IntegerScales(FormatTraits traits) {
  return traits.scales == Scales::kHalf ? 2 : traits.scales == Scales::kBlock ? 1 : 0;
}
static constexpr int IntegerMinimums(FormatTraits traits) {
  return traits.minimums == Minimums::kHalf ? 2 : traits.minimums == Minimums::kBlock ? 1 : 0;
}

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_FORMAT_TRAITS_H_
