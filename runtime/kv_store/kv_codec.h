// Converts KV blocks to and from the forms they have in a store.
//
// A lossy form holds every row of head_dim values (one head at one position) as quant::EncodeRow
// writes it. Rows that a lossy form can't hold stay unchanged: rows whose length is not a multiple
// of 32 values, and rows of caches that are quantised already. Decoding rounds to the cache's own
// type and gives canonical values (docs/numerics.md). Both directions give the same bytes on every
// machine.
//
// Immutable; any number of threads may use a codec at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/quant/block_types.h"
#include "runtime/kv_store/kv_space.h"

namespace trine {

class KvCodec {
 public:
  static absl::StatusOr<KvCodec> Create(const KvLayout& layout);

  uint64_t block_bytes() const { return block_bytes_; }
  uint64_t EncodedBytes(KvForm form) const;
  // Returns whether encoding in this form loses nothing: the form is kRaw, or it can hold no row of
  // this layout, so that all rows stay unchanged.
  bool IsExact(KvForm form) const;

  // Encodes a block. Encodes as kRaw if IsExact(form), or if a value is infinite or NaN, which a
  // lossy form can't hold. REQUIRES: `block` has block_bytes() and begins at a multiple of 4.
  absl::StatusOr<KvPayload> Encode(KvForm form, std::span<const std::byte> block) const;
  // Decodes a payload into `block`. Returns true if it equals the encoded block bit for bit, and
  // false if it is only close to it. REQUIRES: `block` as for Encode.
  absl::StatusOr<bool> Decode(const KvPayload& payload, std::span<std::byte> block) const;

 private:
  // The K or V rows of one layer.
  struct Part {
    quant::Type type = quant::Type::kF16;
    int64_t values = 0;      // the number of values of a row
    uint64_t row_bytes = 0;  // the size of a row in the cache's type
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

// Converts rows of a KV cache to and from a lossy form. Gives the same bits as quant::DequantizeRow
// and quant::EncodeRow, with loops that compilers vectorise.

// Converts `values` values of f16, bf16 or f32 to f32. Returns false if one is infinite or NaN.
bool LoadKvValues(quant::Type type, const std::byte* from, int64_t values, float* out);

// Decodes a row of a lossy form to canonical values of f16, bf16 or f32.
void DecodeKvRow(KvForm form, const std::byte* row, int64_t values, quant::Type type,
                 std::byte* to);

}  // namespace trine
