// Describes which numbers a quantised format has, and not how they are packed.

#pragma once

namespace trine::cpu_kernels {

// The values that share an integer scale.
enum class Scales { kNone, kBlock, kHalf };
// The values that share a minimum. kAdded: Q4_1 and Q5_1, whose min is -1.
enum class Minimums { kNone, kAdded, kBlock, kHalf };

struct FormatTraits {
  Scales scales = Scales::kNone;
  Minimums minimums = Minimums::kNone;
  bool is_signed = false;  // bytes are signed weights, plus kSignedOffset
  int offset = 0;          // of unsigned bytes
};

// Return the number of integer scales, or minimums, of a block.
static constexpr int IntegerScales(FormatTraits traits) {
  return traits.scales == Scales::kHalf ? 2 : traits.scales == Scales::kBlock ? 1 : 0;
}
static constexpr int IntegerMinimums(FormatTraits traits) {
  return traits.minimums == Minimums::kHalf ? 2 : traits.minimums == Minimums::kBlock ? 1 : 0;
}

}  // namespace trine::cpu_kernels
