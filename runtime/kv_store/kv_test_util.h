// Helpers of this folder's tests: a small space, random tokens, and payloads that follow from their
// block's key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/kv_store/kv_space.h"

namespace trine {

inline KvSpaceFields SmallFields() {
  KvSpaceFields fields;
  fields.model.bytes[0] = std::byte{7};
  fields.numerics_version = 1;
  fields.layout.layers = 2;
  fields.layout.kv_heads = 1;
  fields.layout.head_dim_k = fields.layout.head_dim_v = 32;
  return fields;
}

// Returns a space with blocks of 16 KiB.
inline KvSpace SmallSpace(const std::string& owner = "", KvForm form = KvForm::kRaw) {
  KvSpaceFields fields = SmallFields();
  fields.owner = owner;
  fields.form = form;
  return *KvSpace::Create(fields);
}

inline std::vector<int32_t> RandomTokens(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(n);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 50000);
  return tokens;
}

// Returns random bytes that follow from the block's key.
inline std::shared_ptr<const KvPayload> PayloadOf(const KvBlock& block) {
  auto payload = std::make_shared<KvPayload>(KvForm::kRaw, block.space->block_bytes());
  uint64_t state = 0;
  std::memcpy(&state, block.key.bytes.data(), sizeof(state));
  std::mt19937_64 random(state);
  for (size_t at = 0; at < payload->size; at += sizeof(state)) {
    state = random();
    std::memcpy(payload->data.get() + at, &state, sizeof(state));
  }
  return payload;
}

inline bool IsPayloadOf(const KvBlock& block, const KvPayload& payload) {
  const auto right = PayloadOf(block);
  return payload.form == right->form && payload.size == right->size &&
         std::memcmp(payload.data.get(), right->data.get(), right->size) == 0;
}

}  // namespace trine
