#include "runtime/quantize/tensor_role.h"

#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace trine::quantize {
namespace {

// Matrices by their shape that are kept all the same: small, read by value rather than multiplied,
// or, as the routers of experts, the ones whose rounding changes which weights are used at all.
constexpr absl::string_view kKeptParts[] = {
    "_norm.weight", "ffn_gate_inp", "altup",      "laurel",     "per_layer_model_proj",
    "ssm_conv1d",   "shortconv",    "time_mix_",  "attn_rel_b", "position_embd",
    "token_types",  "patch_embd",   "attn_sinks", "rope_freqs", "tid2eid",
};

struct RolePart {
  absl::string_view part;
  Role role;
};
constexpr RolePart kRoleParts[] = {
    {"attn_qkv.", Role::kAttentionV},     {"attn_kv_b.", Role::kAttentionV},
    {"attn_v.", Role::kAttentionV},       {"attn_k.", Role::kAttentionK},
    {"attn_q.", Role::kAttentionQ},       {"attn_output.", Role::kAttentionOutput},
    {"ffn_down", Role::kFeedForwardDown}, {"ffn_up", Role::kFeedForwardUp},
    {"ffn_gate", Role::kFeedForwardUp},
};

constexpr int64_t kMaxLayers = 1 << 20;

bool IsNumeric(quant::Type type) { return type != quant::Type::kI32; }

}  // namespace

Role RoleOf(const gguf::TensorInfo& tensor) {
  const absl::string_view name(tensor.name.data(), tensor.name.size());
  if (tensor.rank < 2 || !IsNumeric(tensor.type) || !absl::EndsWith(name, ".weight")) {
    return Role::kKept;
  }
  for (const absl::string_view part : kKeptParts) {
    if (absl::StrContains(name, part)) return Role::kKept;
  }
  if (name == "output.weight") return Role::kOutput;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") {
    return Role::kTokenEmbedding;
  }
  for (const RolePart& row : kRoleParts) {
    if (absl::StrContains(name, row.part)) return row.role;
  }
  return Role::kOther;
}

int64_t LayerOf(const gguf::TensorInfo& tensor) {
  absl::string_view name(tensor.name.data(), tensor.name.size());
  if (!absl::ConsumePrefix(&name, "blk.")) return -1;
  int64_t layer = -1;
  const bool number = absl::SimpleAtoi(name.substr(0, name.find('.')), &layer);
  return number && layer >= 0 && layer < kMaxLayers ? layer : -1;
}

}  // namespace trine::quantize
