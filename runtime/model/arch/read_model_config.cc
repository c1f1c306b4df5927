#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/quant/scalar.h"
#include "runtime/base/invalid.h"
#include "runtime/model/arch/architecture.h"
#include "runtime/model/arch/config_keys.h"
#include "runtime/model/arch/exact_double.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/model/arch/read_model.h"

namespace trine {
namespace {

constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxHeads = 4096;
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
  // A file in which every layer has experts need not give the width of a dense feed-forward.
  c->n_ff = keys.IntegerOr("feed_forward_length", 0, kMaxWidth, 0);
  e.used = keys.Integer("expert_used_count", 1, e.count);
  e.n_ff = keys.IntegerOr("expert_feed_forward_length", 1, kMaxWidth, c->n_ff);
  e.n_ff_shared = keys.IntegerOr("expert_shared_feed_forward_length", 0, kMaxWidth, 0);
  // In some files 0 means that there is none.
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

constexpr char kFrequencyFactors[] = "rope_freqs.weight";
constexpr char kShortFactors[] = "rope_factors_short.weight";
constexpr char kLongFactors[] = "rope_factors_long.weight";

// Returns YaRN's factor for q and k, which keeps attention as sharp over the longer context.
double YarnMagnitude(double factor, double multiplier) {
  return factor <= 1 ? 1.0 : 1.0 + (0.1 * multiplier) * exact_double::Log(factor);
}

// Returns an empty vector if the file has no such tensor.
absl::StatusOr<std::vector<float>> ReadFactors(const gguf::File& file, const char* name,
                                               int64_t pairs) {
  const gguf::TensorInfo* t = file.FindTensor(name);
  if (t == nullptr) return std::vector<float>();
  if (t->type != quant::Type::kF32 || t->dims[0] != pairs || t->Rows() != 1) {
    return Invalid(name, " must be ", pairs, " values of f32");
  }
  const auto* values = reinterpret_cast<const float*>(t->data);
  std::vector<float> factors(values, values + pairs);
  for (float f : factors) {
    if (!(f >= 1e-6f && f <= 1e6f)) {
      return Invalid(name, " holds ", f, ": factors lie between 1e-6 and 1e6");
    }
  }
  return factors;
}

RopeScalingType ParseScaling(ConfigKeys& keys, bool has_factor) {
  const std::string type = keys.StringOr("rope.scaling.type", has_factor ? "linear" : "none");
  if (type == "none") return RopeScalingType::kNone;
  if (type == "linear") return RopeScalingType::kLinear;
  if (type == "yarn") return RopeScalingType::kYarn;
  if (type == "longrope") return RopeScalingType::kLongRope;
  keys.Fail(absl::UnimplementedError(absl::StrCat(
      keys.Name("rope.scaling.type"), " is \"", type,
      "\"; known here: none, linear, yarn, longrope, and the factors of rope_freqs.weight")));
  return RopeScalingType::kNone;
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
    return Invalid("token_embd.weight has ", config.n_vocab, " rows: too large a vocabulary");
  }
  return config;
}

RopeConfig ReadRopeConfig(ConfigKeys& keys, int64_t head_dim, int64_t context) {
  RopeConfig c;
  c.dims = keys.IntegerOr("rope.dimension_count", 2, kMaxWidth, head_dim);
  c.base = keys.FloatOr("rope.freq_base", 1.0001, 1e12, 10000.0);
  keys.Require(c.dims % 2 == 0 && c.dims <= head_dim,
               absl::StrCat(keys.Name("rope.dimension_count"), " is ", c.dims,
                            ": it must be even and at most the head's ", head_dim));
  c.magnitude = keys.FloatOr("rope.scaling.attn_factor", 1e-3, 1e3, 1.0);
  c.original_context =
      keys.IntegerOr("rope.scaling.original_context_length", 1, kMaxContext, context);
  const char* factor_key = "rope.scaling.factor";
  if (!keys.Has(factor_key)) factor_key = "rope.scale_linear";  // the key of old files
  c.scaling = ParseScaling(keys, keys.Has(factor_key));
  if (c.scaling == RopeScalingType::kNone) return c;

  // In some files 0 means that there is none.
  double factor = keys.FloatOr(factor_key, 0, 1e6, 1.0);
  if (factor == 0) factor = 1;
  keys.Require(factor >= 1e-3, absl::StrCat(keys.Name(factor_key), " is ", factor,
                                            ": it must lie between 0.001 and 1000000"));
  c.position_scale = 1.0 / factor;
  if (c.scaling == RopeScalingType::kYarn) {
    c.yarn.beta_fast = keys.FloatOr("rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32.0);
    c.yarn.beta_slow = keys.FloatOr("rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1.0);
    const double multiplier = keys.FloatOr("rope.scaling.yarn_log_multiplier", 0, 1e3, 0.0);
    c.magnitude = c.magnitude * YarnMagnitude(factor, 1.0);
    if (multiplier != 0) c.magnitude = c.magnitude / YarnMagnitude(factor, multiplier);
  }
  return c;
}

absl::StatusOr<std::vector<float>> ReadRopeFactors(const gguf::File& file, const RopeConfig& config,
                                                   int64_t context) {
  const int64_t pairs = config.dims / 2;
  auto frequency = ReadFactors(file, kFrequencyFactors, pairs);
  auto near = ReadFactors(file, kShortFactors, pairs);
  auto far = ReadFactors(file, kLongFactors, pairs);
  for (const auto* factors : {&frequency, &near, &far}) {
    if (!factors->ok()) return factors->status();
  }
  // Files with long rope may have its factors without a key that says so.
  const bool has_factors = !near->empty() || !far->empty();
  if (!has_factors && config.scaling != RopeScalingType::kLongRope) return frequency;
  const bool beyond = context > config.original_context;
  auto& chosen = beyond ? far : near;
  if (chosen->empty()) {
    return Invalid("the file lacks the tensor ", beyond ? kLongFactors : kShortFactors,
                   ", which long rope needs");
  }
  return chosen;
}

bool IsRopeFactors(std::string_view tensor_name) {
  return tensor_name == kFrequencyFactors || tensor_name == kShortFactors ||
         tensor_name == kLongFactors;
}

}  // namespace trine
