#include "runtime/model/model_config.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/quant/scalar.h"
#include "runtime/model/architecture.h"

namespace trine {
namespace {

constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxWidth = int64_t{1} << 22;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxContext = int64_t{1} << 30;

// Reads keys of the form ARCH.name; the first failure stays and later reads give their fallback.
class Keys {
 public:
  Keys(const gguf::Metadata& metadata, std::string architecture)
      : metadata_(metadata), prefix_(std::move(architecture) + ".") {}

  int64_t Integer(const char* name, int64_t min, int64_t max) {
    return Take(metadata_.Integer(prefix_ + name, min, max), int64_t{0});
  }
  int64_t IntegerOr(const char* name, int64_t min, int64_t max, int64_t fallback) {
    return Take(metadata_.IntegerOr(prefix_ + name, min, max, fallback), fallback);
  }
  double FloatOr(const char* name, double fallback) {
    return Take(metadata_.FloatOr(prefix_ + name, fallback), fallback);
  }
  double Float(const char* name) { return Take(metadata_.Float(prefix_ + name), 0.0); }
  std::string StringOr(const char* name, std::string fallback) {
    const auto value = metadata_.StringOr(prefix_ + name, fallback);
    if (!value.ok()) Fail(value.status());
    return value.ok() ? std::string(*value) : fallback;
  }
  bool Has(const char* name) const { return metadata_.Has(prefix_ + name); }
  void Require(bool condition, const std::string& why) {
    if (!condition) Fail(absl::InvalidArgumentError(why));
  }
  void Fail(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }
  const absl::Status& status() const { return status_; }
  std::string Name(const char* name) const { return prefix_ + name; }

 private:
  template <class T>
  T Take(const absl::StatusOr<T>& value, T fallback) {
    if (!value.ok()) Fail(value.status());
    return value.ok() ? *value : fallback;
  }

  const gguf::Metadata& metadata_;
  std::string prefix_;
  absl::Status status_;
};

void ReadSizes(Keys& keys, ModelConfig* c) {
  c->n_layers = keys.Integer("block_count", 1, kMaxLayers);
  c->n_embd = keys.Integer("embedding_length", 1, kMaxWidth);
  c->n_ff = keys.Integer("feed_forward_length", 1, kMaxWidth);
  c->n_ctx_train = keys.Integer("context_length", 1, kMaxContext);
  c->n_heads = keys.Integer("attention.head_count", 1, kMaxHeads);
  c->n_kv_heads = keys.IntegerOr("attention.head_count_kv", 1, kMaxHeads, c->n_heads);
  if (!keys.status().ok()) return;
  keys.Require(c->n_heads % c->n_kv_heads == 0,
               absl::StrCat(keys.Name("attention.head_count"), " is ", c->n_heads,
                            ", no multiple of the ", c->n_kv_heads, " key-value heads"));
  const int64_t derived = c->n_embd / c->n_heads;
  if (!keys.Has("attention.key_length")) {
    keys.Require(c->n_embd % c->n_heads == 0,
                 absl::StrCat(keys.Name("embedding_length"), " is ", c->n_embd,
                              ", no multiple of the ", c->n_heads, " heads"));
  }
  c->head_dim_k = keys.IntegerOr("attention.key_length", 1, kMaxWidth, derived);
  c->head_dim_v = keys.IntegerOr("attention.value_length", 1, kMaxWidth, derived);
  const double eps = keys.Float("attention.layer_norm_rms_epsilon");
  keys.Require(eps > 0 && eps < 1, absl::StrCat(keys.Name("attention.layer_norm_rms_epsilon"),
                                                " is ", eps, ": it must lie between 0 and 1"));
  c->norm_eps = quant::Canon(static_cast<float>(eps));
}

void ReadRope(Keys& keys, ModelConfig* c) {
  c->rope.dims = keys.IntegerOr("rope.dimension_count", 2, kMaxWidth, c->head_dim_k);
  c->rope.base = keys.FloatOr("rope.freq_base", 10000.0);
  if (!keys.status().ok()) return;
  keys.Require(c->rope.dims % 2 == 0 && c->rope.dims <= c->head_dim_k,
               absl::StrCat(keys.Name("rope.dimension_count"), " is ", c->rope.dims,
                            ": it must be even and at most the head's ", c->head_dim_k));
  keys.Require(c->rope.base > 1 && c->rope.base < 1e12,
               absl::StrCat(keys.Name("rope.freq_base"), " is ", c->rope.base,
                            ": it must lie between 1 and 1e12"));
  const bool linear_by_age = keys.Has("rope.scale_linear");  // how old files say it
  const std::string type = keys.StringOr("rope.scaling.type", linear_by_age ? "linear" : "none");
  if (type == "none") return;
  if (type != "linear") {
    keys.Fail(absl::UnimplementedError(
        absl::StrCat(keys.Name("rope.scaling.type"), " is \"", type,
                     "\"; known here: none, linear, and the factors of rope_freqs.weight")));
    return;
  }
  const double factor = keys.Has("rope.scaling.factor") ? keys.Float("rope.scaling.factor")
                                                        : keys.FloatOr("rope.scale_linear", 1.0);
  keys.Require(factor >= 1e-3 && factor <= 1e6,
               absl::StrCat(keys.Name("rope.scaling.factor"), " is ", factor,
                            ": it must lie between 0.001 and 1000000"));
  c->rope.position_scale = 1.0 / factor;
}

}  // namespace

float ModelConfig::attention_scale() const {
  return quant::Canon(1.0f / std::sqrt(static_cast<float>(head_dim_k)));
}

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

  Keys keys(metadata, config.architecture);
  ReadSizes(keys, &config);
  if (keys.status().ok()) ReadRope(keys, &config);
  if (!keys.status().ok()) return keys.status();
  if (keys.IntegerOr("expert_count", 0, 1 << 20, 0) > 0) {
    return absl::UnimplementedError(
        absl::StrCat("the file is a mixture of experts (", keys.Name("expert_count"),
                     "); this version knows ", config.architecture, " without experts only"));
  }
  const auto causal = metadata.BoolOr(keys.Name("attention.causal"), true);
  if (!causal.ok()) return causal.status();
  if (!*causal) {
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
