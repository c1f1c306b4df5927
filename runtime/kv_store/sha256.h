// SHA-256 over a list of values, each of which says how long it is or always is as long: two lists
// that differ are never the same bytes. The arithmetic is libnettle's. A value like any other.
#ifndef TRINE_RUNTIME_KV_STORE_SHA256_H_
#define TRINE_RUNTIME_KV_STORE_SHA256_H_

#include <nettle/sha2.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "runtime/kv_store/hash256.h"

namespace trine {

class Sha256 {
 public:
  // `purpose` keeps hashes of different things apart.
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
  // The length is the caller's to tell.
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

#endif  // TRINE_RUNTIME_KV_STORE_SHA256_H_
