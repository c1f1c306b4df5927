#include "runtime/model/model_config.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/quant/scalar.h"
#include "runtime/model/architecture.h"
#include "runtime/model/config_keys.h"

namespace trine {
namespace {

constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxWidth = int64_t{1} << 22;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxContext = int64_t{1} << 30;
constexpr int64_t kMaxExperts = 65536;

void ReadSizes(ConfigKeys& keys, ModelConfig* c) {
  c->n_layers = keys.Integer("block_count", 1, kMaxLayers);
  c->n_embd = keys.Integer("embedding_length", 1, kMaxWidth);
  c->n_ctx_train = keys.Integer("context_length", 1, kMaxContext);
  c->n_heads = keys.Integer("attention.head_count", 1, kMaxHeads);
  c->n_kv_heads = keys.IntegerOr("attention.head_count_kv", 1, kMaxHeads, c->n_heads);
  if (!keys.status().ok()) return;
  keys.Require(c->n_heads % c->n_kv_heads == 0,
               absl::StrCat(keys.Name("attention.head_count"), " is ", c->n_heads,
                            ", no multiple of the ", c->n_kv_heads, " key-value heads"));
  const int64_t derived = c->n_embd / c->n_heads;
  if (!keys.Has("attention.key_length") || !keys.Has("attention.value_length")) {
    keys.Require(c->n_embd % c->n_heads == 0,
                 absl::StrCat(keys.Name("embedding_length"), " is ", c->n_embd,
                              ", no multiple of the ", c->n_heads, " heads"));
  }
  c->head_dim_k = keys.IntegerOr("attention.key_length", 1, kMaxWidth, derived);
  c->head_dim_v = keys.IntegerOr("attention.value_length", 1, kMaxWidth, derived);
  c->attention_scale = quant::Canon(1.0f / std::sqrt(static_cast<float>(c->head_dim_k)));
}

void ReadFeedForward(ConfigKeys& keys, ModelConfig* c) {
  ExpertConfig& e = c->experts;
  e.count = keys.IntegerOr("expert_count", 0, kMaxExperts, 0);
  if (e.count == 0) {
    c->n_ff = keys.Integer("feed_forward_length", 1, kMaxWidth);
    return;
  }
  // Where every layer has experts, what a dense one would be as wide as need not be said.
  c->n_ff = keys.IntegerOr("feed_forward_length", 0, kMaxWidth, 0);
  e.used = keys.Integer("expert_used_count", 1, e.count);
  e.n_ff = keys.IntegerOr("expert_feed_forward_length", 1, kMaxWidth, c->n_ff);
  e.n_ff_shared = keys.IntegerOr("expert_shared_feed_forward_length", 0, kMaxWidth, 0);
  // 0 is how some files say that there is none.
  const double scale = keys.FloatOr("expert_weights_scale", 0, 1e6, 1.0);
  e.weight_scale = scale == 0 ? 1.0f : quant::Canon(static_cast<float>(scale));
  keys.Require(e.n_ff > 0,
               absl::StrCat("neither ", keys.Name("expert_feed_forward_length"), " nor ",
                            keys.Name("feed_forward_length"), " says how wide an expert is"));
}

void ReadNorm(ConfigKeys& keys, NormKind kind, ModelConfig* c) {
  const char* name =
      kind == NormKind::kRms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
  const double eps = keys.Float(name, 0, 1);
  keys.Require(eps > 0 && eps < 1,
               absl::StrCat(keys.Name(name), " is ", eps, ": it must lie between 0 and 1"));
  c->norm_eps = quant::Canon(static_cast<float>(eps));
}

}  // namespace

absl::StatusOr<ModelConfig> ReadModelConfig(const gguf::File& file) {
  const gguf::Metadata& metadata = file.metadata();
  const auto architecture = metadata.String("general.architecture");
  if (!architecture.ok()) return architecture.status();
  ModelConfig config;
  config.architecture = std::string(*architecture);
  const auto known = FindArchitecture(config.architecture);
  if (!known.ok()) return known.status();
  const auto name = metadata.StringOr("general.name", "");
  if (!name.ok()) return name.status();
  config.name = std::string(*name);

  ConfigKeys keys(metadata, config.architecture);
  ReadSizes(keys, &config);
  ReadFeedForward(keys, &config);
  ReadNorm(keys, (*known)->norm, &config);
  if (!keys.status().ok()) return keys.status();
  config.rope = ReadRopeConfig(keys, config.head_dim_k, config.n_ctx_train);
  if (keys.status().ok()) (*known)->configure(keys, &config);
  const bool causal = keys.BoolOr("attention.causal", true);
  if (!keys.status().ok()) return keys.status();
  if (!causal) {
    return absl::UnimplementedError(
        absl::StrCat(keys.Name("attention.causal"),
                     " is false: models whose tokens also attend to later ones are not known"));
  }
  const gguf::TensorInfo* embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr) {
    return absl::InvalidArgumentError(
        "the file has no tensor token_embd.weight: it is a vocabulary or a part, not a model");
  }
  config.n_vocab = embedding->dims[1];
  if (config.n_vocab > (int64_t{1} << 22)) {
    return absl::InvalidArgumentError(
        absl::StrCat("token_embd.weight has ", config.n_vocab, " rows: too large a vocabulary"));
  }
  return config;
}

}  // namespace trine
