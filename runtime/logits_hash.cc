#include "runtime/logits_hash.h"

#include <bit>
#include <cstdio>

#include "kernels/reference/math.h"

namespace trine {

// FNV-1a over 32-bit words, with the high half folded down after each: a product alone would never
// carry a word's high bits into the low ones.
void LogitsHash::Add(int64_t position, std::span<const float> row) {
  if (position != rows_) return;
  ++rows_;
  uint64_t h = value_;
  for (const float logit : row) {
    h = (h ^ std::bit_cast<uint32_t>(logit)) * 0x100000001b3ull;
    h ^= h >> 32;
  }
  value_ = h;
}

std::string LogitsHash::Text() const {
  char text[40];
  std::snprintf(text, sizeof(text), "%u-%016llx", reference::kNumericsVersion,
                static_cast<unsigned long long>(value_));
  return text;
}

}  // namespace trine
