#include "runtime/kv_store/hash256.h"

#include "absl/strings/escaping.h"

namespace trine {

std::string ToHex(const Hash256& hash) {
  return absl::BytesToHexString(
      {reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size()});
}

std::optional<Hash256> FromHex(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
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
