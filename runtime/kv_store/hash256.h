// A number of 256 bits that stands for something: its SHA-256.
#ifndef TRINE_RUNTIME_KV_STORE_HASH256_H_
#define TRINE_RUNTIME_KV_STORE_HASH256_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace trine {

struct Hash256 {
  std::array<std::byte, 32> bytes{};  // all zero: stands for nothing

  auto operator<=>(const Hash256&) const = default;

  // Its bits are as good as random: any of them serve a table.
  template <class H>
  friend H AbslHashValue(H state, const Hash256& hash) {
    uint64_t first = 0;
    std::memcpy(&first, hash.bytes.data(), sizeof(first));
    return H::combine(std::move(state), first);
  }
};

std::string ToHex(const Hash256& hash);  // 64 digits, lower case
// Of exactly what ToHex writes.
std::optional<Hash256> FromHex(std::string_view text);

}  // namespace trine

#endif  // TRINE_RUNTIME_KV_STORE_HASH256_H_
