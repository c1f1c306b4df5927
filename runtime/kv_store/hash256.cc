#include "runtime/kv_store/hash256.h"

namespace trine {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string ToHex(const Hash256& hash) {
  std::string text;
  text.reserve(2 * hash.bytes.size());
  for (const std::byte b : hash.bytes) {
    text.push_back(kDigits[std::to_integer<size_t>(b >> 4)]);
    text.push_back(kDigits[std::to_integer<size_t>(b & std::byte{15})]);
  }
  return text;
}

std::optional<Hash256> FromHex(std::string_view text) {
  Hash256 hash;
  if (text.size() != 2 * hash.bytes.size()) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    hash.bytes[i / 2] = hash.bytes[i / 2] << 4 | static_cast<std::byte>(digit);
  }
  return hash;
}

}  // namespace trine
