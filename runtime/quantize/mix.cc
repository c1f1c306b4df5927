#include "runtime/quantize/mix.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "kernels/quant/encode.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/model_summary.h"
#include "runtime/gguf/quoted.h"

namespace trine::quantize {
namespace {

// Parts of names of matrices that are kept all the same: they are small, or read by value rather
// than multiplied, or their rounding would change which weights are used at all, as in the routers
// of experts.
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

bool IsNumeric(quant::Type type) { return type != quant::Type::kI32; }

using quant::Type;

constexpr Mix kMixes[] = {
    {"TQ1_0", Type::kTQ1_0, "1.7 bits, for models trained with ternary weights"},
    {"TQ2_0", Type::kTQ2_0, "2.1 bits, for models trained with ternary weights; faster than TQ1_0"},
    {"Q2_K_S", Type::kQ2_K, "2.6 bits and more for few tensors"},
    {"Q2_K", Type::kQ2_K, "2.6 bits, 3.4 where it hurts most"},
    {"Q3_K_S", Type::kQ3_K, "3.4 bits"},
    {"Q3_K_M", Type::kQ3_K, "3.4 bits, 4.5 and 5.5 where it hurts most"},
    {"Q3_K_L", Type::kQ3_K, "3.4 bits, 5.5 where it hurts most"},
    {"MXFP4", Type::kMXFP4,
     "experts in 4.25 bits (float), the rest in Q8_0: for mixtures of experts"},
    {"IQ4_XS", Type::kIQ4_XS, "4.25 bits, levels that are not evenly spaced"},
    {"IQ4_NL", Type::kIQ4_NL, "4.5 bits, levels that are not evenly spaced"},
    {"Q4_0", Type::kQ4_0, "4.5 bits, the simplest format"},
    {"Q4_K_S", Type::kQ4_K, "4.5 bits and more for few tensors"},
    {"Q4_K_M", Type::kQ4_K, "4.5 bits, 6.6 where it hurts most; a good choice"},
    {"Q4_1", Type::kQ4_1, "5 bits"},
    {"Q5_0", Type::kQ5_0, "5.5 bits"},
    {"Q5_K_S", Type::kQ5_K, "5.5 bits"},
    {"Q5_K_M", Type::kQ5_K, "5.5 bits, 6.6 where it hurts most"},
    {"Q5_1", Type::kQ5_1, "6 bits"},
    {"Q6_K", Type::kQ6_K, "6.6 bits"},
    {"Q8_0", Type::kQ8_0, "8.5 bits, hardly to be told from F16"},
    {"F16", Type::kF16, "16 bits"},
    {"BF16", Type::kBF16, "16 bits with the range of F32"},
    {"F32", Type::kF32, "32 bits"},
    {"COPY", Type::kF32, "every tensor as it is: joins split files", true},
};

struct Alias {
  const char* name;
  const char* mix;
};
constexpr Alias kAliases[] = {
    {"Q3_K", "Q3_K_M"}, {"Q4_K", "Q4_K_M"}, {"Q5_K", "Q5_K_M"}, {"MXFP4_MOE", "MXFP4"}};

enum class Where {
  kEverywhere,
  kFirstTwoLayers,
  kFirstFourLayers,
  kFirstSixteenth,
  kFirstEighth,
  kSomeLayers,  // the first and last eighth, and every third in between
  kSharedHeads,
};

struct Rule {
  const char* mix;
  Role role;
  Where where;
  Type type;
};

// The first rule that applies decides. Attention values and feed-forward outputs get more bits,
// because their errors go straight into the residual; so do first layers, because their errors go
// through all later layers.
constexpr Rule kRules[] = {
    {"TQ1_0", Role::kTokenEmbedding, Where::kEverywhere, Type::kQ4_K},
    {"TQ2_0", Role::kTokenEmbedding, Where::kEverywhere, Type::kQ4_K},
    {"Q2_K_S", Role::kAttentionV, Where::kSharedHeads, Type::kQ4_K},
    {"Q2_K_S", Role::kFeedForwardDown, Where::kFirstEighth, Type::kQ4_K},
    {"Q2_K", Role::kAttentionV, Where::kSharedHeads, Type::kQ4_K},
    {"Q2_K", Role::kAttentionV, Where::kEverywhere, Type::kQ3_K},
    {"Q2_K", Role::kAttentionOutput, Where::kEverywhere, Type::kQ3_K},
    {"Q2_K", Role::kFeedForwardDown, Where::kEverywhere, Type::kQ3_K},
    {"Q3_K_M", Role::kAttentionV, Where::kFirstTwoLayers, Type::kQ5_K},
    {"Q3_K_M", Role::kAttentionV, Where::kEverywhere, Type::kQ4_K},
    {"Q3_K_M", Role::kAttentionOutput, Where::kEverywhere, Type::kQ4_K},
    {"Q3_K_M", Role::kFeedForwardDown, Where::kFirstSixteenth, Type::kQ5_K},
    {"Q3_K_M", Role::kFeedForwardDown, Where::kEverywhere, Type::kQ4_K},
    {"Q3_K_L", Role::kAttentionV, Where::kEverywhere, Type::kQ5_K},
    {"Q3_K_L", Role::kAttentionOutput, Where::kEverywhere, Type::kQ5_K},
    {"Q3_K_L", Role::kFeedForwardDown, Where::kEverywhere, Type::kQ5_K},
    {"IQ4_XS", Role::kAttentionV, Where::kSharedHeads, Type::kQ5_K},
    {"IQ4_XS", Role::kFeedForwardDown, Where::kFirstEighth, Type::kQ5_K},
    {"IQ4_NL", Role::kAttentionV, Where::kSharedHeads, Type::kQ5_K},
    {"IQ4_NL", Role::kFeedForwardDown, Where::kFirstEighth, Type::kQ5_K},
    {"Q4_K_S", Role::kAttentionV, Where::kFirstFourLayers, Type::kQ5_K},
    {"Q4_K_S", Role::kFeedForwardDown, Where::kFirstEighth, Type::kQ5_K},
    {"Q4_K_M", Role::kAttentionV, Where::kSomeLayers, Type::kQ6_K},
    {"Q4_K_M", Role::kFeedForwardDown, Where::kSomeLayers, Type::kQ6_K},
    {"Q5_K_M", Role::kAttentionV, Where::kSomeLayers, Type::kQ6_K},
    {"Q5_K_M", Role::kFeedForwardDown, Where::kSomeLayers, Type::kQ6_K},
};

bool Applies(Where where, int64_t layer, const ModelFacts& facts) {
  if (where == Where::kEverywhere) return true;
  if (where == Where::kSharedHeads) return facts.shares_heads;
  if (layer < 0) return false;
  const int64_t eighth = facts.layers / 8;
  if (where == Where::kFirstTwoLayers) return layer < 2;
  if (where == Where::kFirstFourLayers) return layer < 4;
  if (where == Where::kFirstSixteenth) return layer < facts.layers / 16;
  if (where == Where::kFirstEighth) return layer < eighth;
  return layer < eighth || layer >= 7 * facts.layers / 8 || (layer - eighth) % 3 == 2;
}

double BitsOf(Type type) {
  const quant::TypeTraits traits = quant::Traits(type);
  return 8.0 * traits.block_bytes / traits.block_values;
}

Type Larger(Type a, Type b) { return BitsOf(a) >= BitsOf(b) ? a : b; }

// Pairs of a type and the next larger type with smaller blocks, which replaces it if a row is not a
// whole number of the type's blocks.
constexpr std::pair<Type, Type> kSmallerBlocks[] = {
    {Type::kIQ4_XS, Type::kIQ4_NL}, {Type::kTQ1_0, Type::kQ4_0}, {Type::kTQ2_0, Type::kQ4_0},
    {Type::kQ2_K, Type::kQ4_0},     {Type::kQ3_K, Type::kQ4_0},  {Type::kQ4_K, Type::kQ5_0},
    {Type::kQ5_K, Type::kQ5_1},     {Type::kQ6_K, Type::kQ8_0},
};

// With eight experts or more, attention is a small part of the file.
constexpr int64_t kManyExperts = 8;

Type BesideExperts(Type type, Role role) {
  if (role == Role::kAttentionK || role == Role::kAttentionV) return Larger(type, Type::kQ8_0);
  if (role == Role::kAttentionOutput) return Larger(type, Type::kQ5_K);
  return type;
}

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

absl::Span<const Mix> AllMixes() { return kMixes; }

absl::StatusOr<const Mix*> FindMix(std::string_view name) {
  absl::string_view wanted(name.data(), name.size());
  for (const Alias& alias : kAliases) {
    if (absl::EqualsIgnoreCase(wanted, alias.name)) wanted = alias.mix;
  }
  std::vector<std::string> names;
  for (const Mix& mix : kMixes) {
    if (absl::EqualsIgnoreCase(wanted, mix.name)) return &mix;
    names.push_back(mix.name);
  }
  return Invalid("no type is called ", gguf::Quoted(name), "; there are ",
                 absl::StrJoin(names, ", "));
}

absl::StatusOr<Type> FindTensorType(std::string_view name) {
  std::vector<std::string> names;
  for (const Type type : quant::kAllTypes) {
    if (!quant::CanEncode(type)) continue;
    names.push_back(gguf::TensorTypeName(type));
    if (absl::EqualsIgnoreCase(absl::string_view(name.data(), name.size()), names.back())) {
      return type;
    }
  }
  return Invalid("no tensor type is called ", gguf::Quoted(name), "; there are ",
                 absl::StrJoin(names, ", "));
}

ModelFacts FactsOf(const gguf::File& file) {
  ModelFacts facts;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    facts.layers = std::max(facts.layers, gguf::LayerOf(tensor.name).value_or(-1) + 1);
    if (RoleOf(tensor) != Role::kKept) facts.experts = std::max(facts.experts, tensor.dims[2]);
  }
  facts.tied_output = file.FindTensor("output.weight") == nullptr;
  const auto shape = gguf::ReadModelShape(file);
  if (!shape.ok()) return facts;
  for (size_t i = 0; i < shape->heads.size() && i < shape->kv_heads.size(); ++i) {
    if (shape->kv_heads[i] > 0 && shape->heads[i] / shape->kv_heads[i] >= 4) {
      facts.shares_heads = true;
    }
  }
  return facts;
}

Type MixedType(const Mix& mix, const gguf::TensorInfo& tensor, const ModelFacts& facts) {
  const Role role = RoleOf(tensor);
  if (!quant::IsQuantized(mix.base)) return mix.base;
  const bool output = role == Role::kOutput || (role == Role::kTokenEmbedding && facts.tied_output);
  if (mix.base == Type::kMXFP4) return tensor.dims[2] > 1 ? mix.base : Type::kQ8_0;
  if (output) {
    const bool whole = tensor.dims[0] % quant::kSuperValues == 0;
    return mix.base == Type::kQ8_0 || !whole ? Type::kQ8_0 : Type::kQ6_K;
  }
  const int64_t layer = gguf::LayerOf(tensor.name).value_or(-1);
  Type type = mix.base;
  for (const Rule& rule : kRules) {
    if (rule.role != role || absl::string_view(rule.mix) != mix.name) continue;
    if (!Applies(rule.where, layer, facts)) continue;
    type = rule.type;
    break;
  }
  return facts.experts >= kManyExperts ? BesideExperts(type, role) : type;
}

Type FittingType(Type type, int64_t values) {
  const auto fits = [values](Type t) { return values % quant::Traits(t).block_values == 0; };
  if (fits(type)) return type;
  for (const auto& [large, small] : kSmallerBlocks) {
    if (type == large && fits(small)) return small;
  }
  return Type::kF16;
}

}  // namespace trine::quantize
