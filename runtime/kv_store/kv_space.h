// What a KV block is known by outside of the device that computed it.
//
// What a block holds is a function of its tokens, of all tokens before it, and of a space: model,
// numerics, types and layout. Its key is the SHA-256 of the space, the key of the block before it
// and its own tokens, so it stands for the whole lineage. A key is never trusted alone: stores keep
// space, parent and tokens beside the bytes and compare them.
//
// Spaces are immutable; any thread may read. Blocks borrow their space and tokens.
#ifndef TRINE_RUNTIME_KV_STORE_KV_SPACE_H_
#define TRINE_RUNTIME_KV_STORE_KV_SPACE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/quant/block_types.h"
#include "runtime/kv_store/hash256.h"
#include "runtime/kv_store/kv_form.h"

namespace trine {

// Where what lies in a block: for each layer K, then V, each [kv_heads][positions][head_dim].
struct KvLayout {
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim_k = 0, head_dim_v = 0;
  quant::Type type_k = quant::Type::kF16, type_v = quant::Type::kF16;  // TRINE_DTYPE_*
  uint32_t positions = 64;                                             // a multiple of 4

  // INVALID_ARGUMENT where a number is none that a cache can have.
  absl::StatusOr<uint64_t> BlockBytes() const;
};

struct KvSpaceFields {
  Hash256 model;  // HashModel
  uint32_t numerics_version = 0;
  KvLayout layout;
  // How blocks lie in the store. What is computed behind a block that came back inexact is inexact
  // itself, so those who accept a lossy form have a space of their own: nothing in a space of kRaw
  // ever was.
  KvForm form = KvForm::kRaw;
  // Whose it is: an API key, or "". Only its hash leaves the process.
  std::string owner;
  // Anything else the contents depend on, as text.
  std::string other;
};

class KvSpace {
 public:
  static absl::StatusOr<KvSpace> Create(const KvSpaceFields& fields);

  const Hash256& id() const { return id_; }  // over all fields
  const Hash256& model() const { return model_; }
  uint32_t numerics_version() const { return numerics_version_; }
  const KvLayout& layout() const { return layout_; }
  KvForm form() const { return form_; }
  uint64_t block_bytes() const { return block_bytes_; }  // as it is, whatever the form

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
  Hash256 parent;               // the key of the block before it; zeros for the first one
  uint64_t first_position = 0;  // how many tokens are before it
  std::span<const int32_t> tokens;
};

Hash256 KvBlockKey(const Hash256& space, const Hash256& parent, uint64_t first_position,
                   std::span<const int32_t> tokens);

// `tokens` fill a block.
KvBlock FirstKvBlock(const KvSpace& space, std::span<const int32_t> tokens);
KvBlock NextKvBlock(const KvBlock& parent, std::span<const int32_t> tokens);
// All full blocks of `tokens`, in order.
std::vector<KvBlock> KvBlocksOf(const KvSpace& space, std::span<const int32_t> tokens);

}  // namespace trine

#endif  // TRINE_RUNTIME_KV_STORE_KV_SPACE_H_
