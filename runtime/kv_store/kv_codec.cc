#include "runtime/kv_store/kv_codec.h"

#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/quant/encode.h"
#include "runtime/kv_store/kv_rows.h"

namespace trine {
namespace {

quant::Type TypeOf(KvForm form) { return static_cast<quant::Type>(form); }

// Whether rows are held by a lossy form.
bool Holds(KvForm form, quant::Type type, int64_t values) {
  if (form == KvForm::kRaw || quant::IsQuantized(type)) return false;
  return values % quant::Traits(TypeOf(form)).block_values == 0;
}

}  // namespace

absl::StatusOr<KvCodec> KvCodec::Create(const KvLayout& layout) {
  const auto bytes = layout.BlockBytes();
  if (!bytes.ok()) return bytes.status();
  for (const quant::Type type : {layout.type_k, layout.type_v}) {
    if (type == quant::Type::kF32 || type == quant::Type::kF16 || type == quant::Type::kBF16) {
      continue;
    }
    if (quant::IsQuantized(type)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(quant::Traits(type).name, " is no type of a cache"));
  }
  KvCodec codec;
  codec.layers_ = layout.layers;
  codec.block_bytes_ = *bytes;
  const uint64_t rows = uint64_t{layout.kv_heads} * layout.positions;
  codec.parts_[0] = {layout.type_k, layout.head_dim_k, 0, rows};
  codec.parts_[1] = {layout.type_v, layout.head_dim_v, 0, rows};
  for (Part& part : codec.parts_) quant::RowBytes(part.type, part.values, &part.row_bytes);
  return codec;
}

uint64_t KvCodec::RowBytes(const Part& part, KvForm form) const {
  if (!Holds(form, part.type, part.values)) return part.row_bytes;
  uint64_t bytes = 0;
  quant::RowBytes(TypeOf(form), part.values, &bytes);
  return bytes;
}

uint64_t KvCodec::EncodedBytes(KvForm form) const {
  uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.rows * RowBytes(part, form);
  return layers_ * bytes;
}

bool KvCodec::IsExact(KvForm form) const {
  for (const Part& part : parts_) {
    if (Holds(form, part.type, part.values)) return false;
  }
  return true;
}

bool KvCodec::EncodePart(const Part& part, KvForm form, const std::byte* from,
                         std::byte* to) const {
  if (!Holds(form, part.type, part.values)) {
    std::memcpy(to, from, part.rows * part.row_bytes);
    return true;
  }
  const uint64_t encoded = RowBytes(part, form);
  std::vector<float> row(static_cast<size_t>(part.values));
  for (uint64_t r = 0; r < part.rows; ++r) {
    if (!LoadKvValues(part.type, from + r * part.row_bytes, part.values, row.data()) ||
        !quant::EncodeRow(TypeOf(form), row.data(), part.values, nullptr, to + r * encoded)) {
      return false;
    }
  }
  return true;
}

void KvCodec::DecodePart(const Part& part, KvForm form, const std::byte* from,
                         std::byte* to) const {
  if (!Holds(form, part.type, part.values)) {
    std::memcpy(to, from, part.rows * part.row_bytes);
    return;
  }
  const uint64_t encoded = RowBytes(part, form);
  for (uint64_t r = 0; r < part.rows; ++r) {
    DecodeKvRow(form, from + r * encoded, part.values, part.type, to + r * part.row_bytes);
  }
}

absl::StatusOr<KvPayload> KvCodec::Encode(KvForm form, std::span<const std::byte> block) const {
  if (block.size() != block_bytes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a block of ", block.size(), " bytes, not ", block_bytes_));
  }
  if (!IsExact(form)) {
    KvPayload payload(form, EncodedBytes(form));
    const std::byte* from = block.data();
    std::byte* to = payload.data.get();
    bool held = true;
    for (uint32_t i = 0; held && i < 2 * layers_; ++i) {
      const Part& part = parts_[i % 2];
      held = EncodePart(part, form, from, to);
      from += part.rows * part.row_bytes;
      to += part.rows * RowBytes(part, form);
    }
    if (held) return payload;
  }
  KvPayload payload(KvForm::kRaw, block_bytes_);
  std::memcpy(payload.data.get(), block.data(), block.size());
  return payload;
}

absl::StatusOr<bool> KvCodec::Decode(const KvPayload& payload, std::span<std::byte> block) const {
  if (!IsKvForm(static_cast<uint32_t>(payload.form))) {
    return absl::InvalidArgumentError("a block in no known form");
  }
  if (block.size() != block_bytes_ || payload.size != EncodedBytes(payload.form)) {
    return absl::InvalidArgumentError(absl::StrCat(
        payload.size, " bytes of ", KvFormName(payload.form), " for a block of ", block.size(),
        ", not ", EncodedBytes(payload.form), " for one of ", block_bytes_));
  }
  const std::byte* from = payload.data.get();
  std::byte* to = block.data();
  for (uint32_t i = 0; i < 2 * layers_; ++i) {
    const Part& part = parts_[i % 2];
    DecodePart(part, payload.form, from, to);
    from += part.rows * RowBytes(part, payload.form);
    to += part.rows * part.row_bytes;
  }
  return IsExact(payload.form);
}

}  // namespace trine
