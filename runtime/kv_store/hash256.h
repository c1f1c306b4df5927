// SHA-256 hashes, which identify models, spaces and KV blocks.
#pragma once

#include <nettle/sha2.h>

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace trine {

struct Hash256 {
  std::array<std::byte, 32> bytes{};  // all zero: no hash

  auto operator<=>(const Hash256&) const = default;

  // The bits of a SHA-256 are as good as random, so a hash table can use any of them.
  template <class H>
  friend H AbslHashValue(H state, const Hash256& hash) {
    uint64_t first = 0;
    std::memcpy(&first, hash.bytes.data(), sizeof(first));
    return H::combine(std::move(state), first);
  }
};

std::string ToHex(const Hash256& hash);  // 64 digits, lower case
// Parses the output of ToHex. Returns nullopt for any other text.
std::optional<Hash256> FromHex(std::string_view text);

// Computes the SHA-256 of a list of values. Each value has a fixed length or is preceded by its
// length, so different lists never give the same bytes. libnettle does the arithmetic.
class Sha256 {
 public:
  // `purpose` names the kind of thing that is hashed, so that things of different kinds never have
  // the same hash.
  explicit Sha256(std::string_view purpose) {
    sha256_init(&context_);
    Text(purpose);
  }

  template <class T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T> && std::endian::native == std::endian::little);
    Bytes(&value, sizeof(value));
  }
  void Text(std::string_view text) {
    Number(static_cast<uint64_t>(text.size()));
    Bytes(text.data(), text.size());
  }
  void Hash(const Hash256& hash) { Bytes(hash.bytes.data(), hash.bytes.size()); }
  // Adds bytes without their number. If the number varies, the caller must add it before them.
  void Bytes(const void* data, size_t bytes) {
    sha256_update(&context_, bytes, static_cast<const uint8_t*>(data));
  }

  Hash256 Finish() {
    Hash256 hash;
    sha256_digest(&context_, hash.bytes.size(), reinterpret_cast<uint8_t*>(hash.bytes.data()));
    return hash;
  }

 private:
  sha256_ctx context_;
};

}  // namespace trine
