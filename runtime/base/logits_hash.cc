#include "runtime/base/logits_hash.h"

#include <bit>
#include <cstdio>

#include "kernels/reference/math.h"

namespace trine {

// FNV-1a over 32-bit words, with the high half folded down after each: a product alone would never
// carry a word's high bits into the low ones.
void LogitsHash::Add(int64_t position, std::span<const float> row) {
  if (position != rows()) return;
  uint64_t h = value();
  for (const float logit : row) {
    h = (h ^ std::bit_cast<uint32_t>(logit)) * 0x100000001b3ull;
    h ^= h >> 32;
  }
  after_row_.push_back(h);
}

void LogitsHash::Truncate(int64_t n) {
  if (n < rows()) after_row_.resize(static_cast<size_t>(n < 0 ? 0 : n));
}

uint64_t LogitsHash::value() const {
  return after_row_.empty() ? 0xcbf29ce484222325ull : after_row_.back();
}

std::string LogitsHash::Text() const {
  char text[40];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value()));
  return (fast_ ? "fast-" : std::to_string(reference::kNumericsVersion) + "-") + text;
}

}  // namespace trine
