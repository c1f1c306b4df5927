// Identifies KV blocks outside of the device that computed them.
//
// A block's contents depend on its tokens, on all tokens before it, and on a space: the model,
// numerics, types and layout. A block's key is the SHA-256 of the space, the key of the block
// before it, and its own tokens, so it stands for all tokens up to the block's end. A key alone is
// never trusted: stores keep space, parent and tokens together with the bytes and compare them.
//
// Spaces are immutable; any thread may read them. A block's space and tokens must outlive the
// block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/quant/block_types.h"
#include "runtime/kv_store/hash256.h"

namespace trine {

// The form of a block in a store: unchanged, or with fewer bits (docs/kv.md). Files contain these
// numbers, so they never change. All but kRaw are numbers of quant::Type.
enum class KvForm : uint32_t { kRaw = 0, kQ4_0 = 16, kQ8_0 = 20, kMxfp4 = 48 };

inline constexpr KvForm kAllKvForms[] = {KvForm::kRaw, KvForm::kQ4_0, KvForm::kQ8_0,
                                         KvForm::kMxfp4};

inline bool IsKvForm(uint32_t number) {
  return std::ranges::count(kAllKvForms, static_cast<KvForm>(number)) != 0;
}

inline const char* KvFormName(KvForm form) {
  if (form == KvForm::kRaw) return "raw";
  if (form == KvForm::kQ4_0) return "q4_0";
  return form == KvForm::kQ8_0 ? "q8_0" : form == KvForm::kMxfp4 ? "mxfp4" : "?";
}

inline std::optional<KvForm> ParseKvForm(std::string_view name) {
  for (const KvForm form : kAllKvForms) {
    if (name == KvFormName(form)) return form;
  }
  return std::nullopt;
}

// A block's bytes in one of the forms. After it has been filled, any thread may read it.
struct KvPayload {
  KvPayload() = default;
  // Leaves the bytes uninitialised.
  KvPayload(KvForm the_form, size_t bytes)
      : form(the_form), size(bytes), data(std::make_unique_for_overwrite<std::byte[]>(bytes)) {}

  std::span<const std::byte> bytes() const { return {data.get(), size}; }
  std::span<std::byte> bytes() { return {data.get(), size}; }

  KvForm form = KvForm::kRaw;
  size_t size = 0;
  std::unique_ptr<std::byte[]> data;  // aligned for any type
};

// The order of values in a block: for each layer K, then V, each [kv_heads][positions][head_dim].
struct KvLayout {
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim_k = 0, head_dim_v = 0;
  quant::Type type_k = quant::Type::kF16, type_v = quant::Type::kF16;  // TRINE_DTYPE_*
  uint32_t positions = 64;                                             // a multiple of 4

  // Returns the size of a block. Returns INVALID_ARGUMENT if no cache can have these numbers.
  absl::StatusOr<uint64_t> BlockBytes() const;
};

struct KvSpaceFields {
  Hash256 model;  // the result of HashModel
  uint32_t numerics_version = 0;
  KvLayout layout;
  // The form of blocks in the store. Blocks that are computed after an inexact block are inexact
  // too, so each lossy form has its own spaces, and a space of kRaw holds only exact blocks.
  KvForm form = KvForm::kRaw;
  // The owner of the blocks: an API key, or "". Only its hash leaves the process.
  std::string owner;
  // A text that stands for everything else that the contents depend on.
  std::string other;
};

class KvSpace {
 public:
  static absl::StatusOr<KvSpace> Create(const KvSpaceFields& fields);

  const Hash256& id() const { return id_; }  // the hash of all fields
  const Hash256& model() const { return model_; }
  uint32_t numerics_version() const { return numerics_version_; }
  const KvLayout& layout() const { return layout_; }
  KvForm form() const { return form_; }
  uint64_t block_bytes() const { return block_bytes_; }  // the size on a device, for any form

 private:
  KvSpace() = default;

  Hash256 id_, model_;
  uint32_t numerics_version_ = 0;
  KvLayout layout_;
  KvForm form_ = KvForm::kRaw;
  uint64_t block_bytes_ = 0;
};

struct KvBlock {
  const KvSpace* space = nullptr;
  Hash256 key;
  Hash256 parent;               // the key of the block before it; zeros for the first block
  uint64_t first_position = 0;  // the number of tokens before it
  std::span<const int32_t> tokens;
};

Hash256 KvBlockKey(const Hash256& space, const Hash256& parent, uint64_t first_position,
                   std::span<const int32_t> tokens);

// Return a space's first block, or the block after `parent`. REQUIRES: `tokens` fill a block.
KvBlock FirstKvBlock(const KvSpace& space, std::span<const int32_t> tokens);
KvBlock NextKvBlock(const KvBlock& parent, std::span<const int32_t> tokens);
// Returns all full blocks of `tokens`, in order.
std::vector<KvBlock> KvBlocksOf(const KvSpace& space, std::span<const int32_t> tokens);

// Returns INVALID_ARGUMENT if a payload does not fit its block.
absl::Status CheckKvBlock(const KvBlock& block, const KvPayload& payload);

}  // namespace trine
