// KV blocks to and from the forms they have in a store.
//
// A lossy form holds every row of head_dim values (one head at one position) as quant::EncodeRow
// writes it. Rows it can't hold stay as they are: those that are no multiple of 32 values, and
// those of caches that are quantised already. Decoding rounds to the cache's own type, and gives
// canonical values (docs/numerics.md); the same bytes on every machine, both ways.
//
// Immutable; any number of threads may use one at once.
#ifndef TRINE_RUNTIME_KV_STORE_KV_CODEC_H_
#define TRINE_RUNTIME_KV_STORE_KV_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "runtime/kv_store/kv_form.h"
#include "runtime/kv_store/kv_space.h"

namespace trine {

class KvCodec {
 public:
  static absl::StatusOr<KvCodec> Create(const KvLayout& layout);

  uint64_t block_bytes() const { return block_bytes_; }
  uint64_t EncodedBytes(KvForm form) const;
  // Whether nothing is lost: the form is kRaw, or no row of this layout can be held by it.
  bool IsExact(KvForm form) const;

  // `block` has block_bytes() and begins at a multiple of 4. The payload is kRaw where IsExact, and
  // where a value is infinite or none: those a lossy form can't hold.
  absl::StatusOr<KvPayload> Encode(KvForm form, std::span<const std::byte> block) const;
  // True: `block` is what was encoded, bit for bit. False: near it. `block` as above.
  absl::StatusOr<bool> Decode(const KvPayload& payload, std::span<std::byte> block) const;

 private:
  // K or V of a layer.
  struct Part {
    quant::Type type = quant::Type::kF16;
    int64_t values = 0;      // of a row
    uint64_t row_bytes = 0;  // as it is
    uint64_t rows = 0;
  };

  KvCodec() = default;
  uint64_t RowBytes(const Part& part, KvForm form) const;
  bool EncodePart(const Part& part, KvForm form, const std::byte* from, std::byte* to) const;
  void DecodePart(const Part& part, KvForm form, const std::byte* from, std::byte* to) const;

  uint32_t layers_ = 0;
  Part parts_[2];
  uint64_t block_bytes_ = 0;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_KV_STORE_KV_CODEC_H_
