#include "runtime/kv_store/kv_space.h"

#include "runtime/base/invalid.h"

namespace trine {
namespace {

// No model comes near these limits, and the product of all fits in 64 bits.
constexpr uint32_t kMaxLayers = 1 << 14;
constexpr uint32_t kMaxHeads = 1 << 14;
constexpr uint32_t kMaxHeadDim = 1 << 14;
constexpr uint32_t kMaxPositions = 1 << 12;

bool Within(uint32_t n, uint32_t most) { return n >= 1 && n <= most; }

KvBlock MakeBlock(const KvSpace& space, const Hash256& parent, uint64_t first_position,
                  std::span<const int32_t> tokens) {
  return {&space, KvBlockKey(space.id(), parent, first_position, tokens), parent, first_position,
          tokens};
}

}  // namespace

absl::StatusOr<uint64_t> KvLayout::BlockBytes() const {
  if (!Within(layers, kMaxLayers) || !Within(kv_heads, kMaxHeads) ||
      !Within(head_dim_k, kMaxHeadDim) || !Within(head_dim_v, kMaxHeadDim) ||
      !Within(positions, kMaxPositions) || positions % 4 != 0) {
    return Invalid("no cache has ", layers, " layers of ", kv_heads, " heads of ", head_dim_k,
                   " and ", head_dim_v, " values in blocks of ", positions, " positions");
  }
  uint64_t k = 0, v = 0;
  if (!quant::RowBytes(type_k, head_dim_k, &k) || !quant::RowBytes(type_v, head_dim_v, &v)) {
    return Invalid("no cache has heads of ", head_dim_k, " and ", head_dim_v, " values of types ",
                   static_cast<uint32_t>(type_k), " and ", static_cast<uint32_t>(type_v));
  }
  return uint64_t{layers} * kv_heads * positions * (k + v);
}

absl::StatusOr<KvSpace> KvSpace::Create(const KvSpaceFields& fields) {
  const KvLayout& layout = fields.layout;
  const auto bytes = layout.BlockBytes();
  if (!bytes.ok()) return bytes.status();
  Sha256 owner("trine kv owner 1");
  owner.Text(fields.owner);
  Sha256 id("trine kv space 1");
  id.Hash(fields.model);
  id.Number(fields.numerics_version);
  for (const uint32_t n :
       {layout.layers, layout.kv_heads, layout.head_dim_k, layout.head_dim_v,
        static_cast<uint32_t>(layout.type_k), static_cast<uint32_t>(layout.type_v),
        layout.positions, static_cast<uint32_t>(fields.form)}) {
    id.Number(n);
  }
  id.Number(*bytes);
  id.Hash(owner.Finish());
  id.Text(fields.other);
  KvSpace space;
  space.id_ = id.Finish();
  space.model_ = fields.model;
  space.numerics_version_ = fields.numerics_version;
  space.layout_ = layout;
  space.form_ = fields.form;
  space.block_bytes_ = *bytes;
  return space;
}

Hash256 KvBlockKey(const Hash256& space, const Hash256& parent, uint64_t first_position,
                   std::span<const int32_t> tokens) {
  Sha256 hash("trine kv block 1");
  hash.Hash(space);
  hash.Hash(parent);
  hash.Number(first_position);
  hash.Number(static_cast<uint64_t>(tokens.size()));
  hash.Bytes(tokens.data(), tokens.size_bytes());
  return hash.Finish();
}

KvBlock FirstKvBlock(const KvSpace& space, std::span<const int32_t> tokens) {
  return MakeBlock(space, {}, 0, tokens);
}

KvBlock NextKvBlock(const KvBlock& parent, std::span<const int32_t> tokens) {
  return MakeBlock(*parent.space, parent.key, parent.first_position + parent.tokens.size(), tokens);
}

std::vector<KvBlock> KvBlocksOf(const KvSpace& space, std::span<const int32_t> tokens) {
  const size_t n = space.layout().positions;
  std::vector<KvBlock> blocks;
  blocks.reserve(tokens.size() / n);
  for (size_t at = 0; at + n <= tokens.size(); at += n) {
    const auto own = tokens.subspan(at, n);
    blocks.push_back(blocks.empty() ? FirstKvBlock(space, own) : NextKvBlock(blocks.back(), own));
  }
  return blocks;
}

absl::Status CheckKvBlock(const KvBlock& block, const KvPayload& payload) {
  const KvSpace& space = *block.space;
  if (block.tokens.size() != space.layout().positions) {
    return Invalid("a block of ", block.tokens.size(), " tokens where blocks have ",
                   space.layout().positions);
  }
  if (payload.form == KvForm::kRaw ? payload.size != space.block_bytes()
                                   : payload.size == 0 || payload.size > space.block_bytes()) {
    return Invalid(payload.size, " bytes of ", KvFormName(payload.form), " for a block of ",
                   space.block_bytes());
  }
  if (payload.form != KvForm::kRaw && payload.form != space.form()) {
    return Invalid("a block in the form ", KvFormName(payload.form), " in a space of ",
                   KvFormName(space.form()));
  }
  return absl::OkStatus();
}

}  // namespace trine
