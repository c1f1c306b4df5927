#include "runtime/make_model/tensor_list.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/make_model/skew.h"

namespace trine {
namespace {

constexpr double kTwoPi = 6.283185307179586;

// Waves that turn less than once in the original context are stretched by the whole factor, those
// that turn more than four times not at all, the others by a value in between.
std::vector<float> Llama3Factors(const RopeShape& rope, int64_t pairs) {
  constexpr double kLowTurns = 1, kHighTurns = 4;
  // base^(1 / pairs), by square roots, which every processor rounds alike. CheckShape ensures that
  // pairs is a power of two.
  double step = rope.base;
  for (int64_t n = pairs; n > 1; n /= 2) step = std::sqrt(step);
  std::vector<float> factors;
  double wave = kTwoPi;
  for (int64_t i = 0; i < pairs; ++i, wave *= step) {
    const double turns = static_cast<double>(rope.original_context) / wave;
    double factor = 1;
    if (turns < kLowTurns) {
      factor = rope.factor;
    } else if (turns <= kHighTurns) {
      const double smooth = (turns - kLowTurns) / (kHighTurns - kLowTurns);
      factor = 1 / ((1 - smooth) / rope.factor + smooth);
    }
    factors.push_back(static_cast<float>(factor));
  }
  return factors;
}

// Rises from 1 for the shortest wave to almost `last` for the longest.
std::vector<float> Ramp(int64_t pairs, double last) {
  std::vector<float> factors;
  for (int64_t i = 0; i < pairs; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(pairs);
    factors.push_back(static_cast<float>(1 + (last - 1) * part * part));
  }
  return factors;
}

using quant::Type;

constexpr double kLogitSpread = 3;        // as in trained models
constexpr double kAttentionSpread = 1.5;  // for q and k: heads prefer some tokens
constexpr double kRouterSpread = 2;       // some experts are clearly better than others
constexpr double kVectorSpread = 0.2;     // of norms around one, and of biases

double Root(int64_t n) { return std::sqrt(static_cast<double>(n)); }

double OneIfNone(double scale) { return scale > 0 ? scale : 1; }

// The standard deviations of a model's random weights: of the tensors outside of the layers, and of
// the matrices whose results are added to the residual.
struct Spreads {
  double embedding = 1;
  double residual = 1;
  double output_norm = 1;  // the mean of its values
  double output = 1;
};

Spreads SpreadsOf(const ModelShape& shape, const Family& family) {
  Spreads spreads;
  const double added = Root(2 * shape.layers);  // each layer adds to the residual twice
  spreads.residual = 1 / (added * OneIfNone(shape.residual_scale));
  const double embedding_scale =
      OneIfNone(shape.embedding_scale) * (family.scales_embedding ? Root(shape.embd) : 1);
  const double logits = kLogitSpread * OneIfNone(shape.logit_scale);
  spreads.embedding = 1 / embedding_scale;
  spreads.output = logits / Root(shape.embd);
  if (shape.tied) {
    // A token's own embedding must be a small part of the layers' output, or the model would only
    // repeat the token. The last norm makes up for the small matrix.
    spreads.embedding *= (family.post_norms ? added : 1) / Root(shape.embd);
    spreads.output_norm = spreads.output / spreads.embedding;
  }
  return spreads;
}

class Lister {
 public:
  explicit Lister(const ModelShape& shape)
      : shape_(shape),
        family_(*FindFamily(shape.architecture)),
        spreads_(SpreadsOf(shape, family_)) {}

  std::vector<TensorSpec> List() {
    Add("token_embd.weight", {shape_.embd, shape_.vocab}, shape_.type, spreads_.embedding);
    AddRopeFactors();
    for (layer_ = 0; layer_ < shape_.layers; ++layer_) {
      ListAttention();
      ListFeedForward();
    }
    Norm("output_norm", shape_.embd, spreads_.output_norm);
    if (!shape_.tied) {
      Add("output.weight", {shape_.embd, shape_.vocab}, shape_.type, spreads_.output);
    }
    return std::move(tensors_);
  }

 private:
  void ListAttention() {
    const int64_t q = shape_.heads * shape_.head_dim;
    const int64_t kv = shape_.kv_heads * shape_.head_dim;
    const bool is_normed = family_.qk_norm != QkNorm::kNone;
    const double qk_spread = is_normed ? 1 : kAttentionSpread;
    if (family_.pre_norms) Norm(Name("attn_norm"), shape_.embd);
    if (family_.fused) {
      Linear("attn_qkv", shape_.embd, q + 2 * kv, 1, family_.qkv_bias);
    } else {
      Linear("attn_q", shape_.embd, q, qk_spread, family_.qkv_bias);
      Linear("attn_k", shape_.embd, kv, qk_spread, family_.qkv_bias);
      Linear("attn_v", shape_.embd, kv, 1, family_.qkv_bias);
    }
    if (is_normed) {
      const bool per_head = family_.qk_norm == QkNorm::kHead;
      Norm(Name("attn_q_norm"), per_head ? shape_.head_dim : q);
      Norm(Name("attn_k_norm"), per_head ? shape_.head_dim : kv);
    }
    if (family_.sinks) {
      Add(Name("attn_sinks.weight"), {shape_.heads}, Type::kF32, 1);
    }
    Linear("attn_output", q, shape_.embd, spreads_.residual, family_.attention_output_bias);
    if (family_.post_norms) Norm(Name("post_attention_norm"), shape_.embd);
  }

  void ListFeedForward() {
    if (family_.pre_norms) Norm(Name(family_.ff_norm), shape_.embd);
    if (shape_.experts > 0) {
      ListExperts();
    } else {
      ListDense("", shape_.ff);
    }
    if (family_.post_norms) Norm(Name("post_ffw_norm"), shape_.embd);
  }

  // `suffix`: "" or "_shexp".
  void ListDense(const char* suffix, int64_t ff) {
    const bool gate = family_.gated && !family_.fused;
    const int64_t up = family_.fused ? 2 * ff : ff;
    if (gate) {
      Linear(absl::StrCat("ffn_gate", suffix), shape_.embd, ff, shape_.ff_spread, family_.ff_bias);
    }
    Linear(absl::StrCat("ffn_up", suffix), shape_.embd, up, shape_.ff_spread, family_.ff_bias);
    Linear(absl::StrCat("ffn_down", suffix), ff, shape_.embd, spreads_.residual, family_.ff_bias);
  }

  void ListExperts() {
    const int64_t ff = shape_.expert_ff > 0 ? shape_.expert_ff : shape_.ff;
    Add(Name("ffn_gate_inp.weight"), {shape_.embd, shape_.experts}, Type::kF32,
        kRouterSpread / Root(shape_.embd));
    if (shape_.router_skew != 1) {
      TensorSpec& router = tensors_.back();
      router.row_factors = SkewedRows(router.name, shape_.experts, shape_.router_skew);
    }
    if (family_.ff_bias) Bias(Name("ffn_gate_inp.bias"), {shape_.experts});
    Experts("ffn_gate_exps", shape_.embd, ff, shape_.ff_spread);
    Experts("ffn_up_exps", shape_.embd, ff, shape_.ff_spread);
    Experts("ffn_down_exps", ff, shape_.embd, spreads_.residual);
    if (shape_.shared_ff == 0) return;
    if (family_.shared_expert_gate) {
      Add(Name("ffn_gate_inp_shexp.weight"), {shape_.embd}, Type::kF32, 1 / Root(shape_.embd));
    }
    ListDense("_shexp", shape_.shared_ff);
  }

  void Experts(const char* part, int64_t in, int64_t out, double spread) {
    Add(Name(absl::StrCat(part, ".weight")), {in, out, shape_.experts}, shape_.expert_type,
        spread / Root(in));
    if (family_.ff_bias) Bias(Name(absl::StrCat(part, ".bias")), {out, shape_.experts});
  }

  // `spread`: of the outputs for inputs of unit size.
  void Linear(const std::string& part, int64_t in, int64_t out, double spread, bool bias) {
    Add(Name(absl::StrCat(part, ".weight")), {in, out}, shape_.type, spread / Root(in));
    if (bias) Bias(Name(absl::StrCat(part, ".bias")), {out});
  }

  void Norm(const std::string& name, int64_t n, double middle = 1) {
    Add(name + ".weight", {n}, Type::kF32, middle * kVectorSpread);
    tensors_.back().middle = static_cast<float>(middle);
    if (family_.layer_norm) Bias(name + ".bias", {n});
  }

  void Bias(std::string name, std::vector<int64_t> dims) {
    Add(std::move(name), std::move(dims), Type::kF32, kVectorSpread);
  }

  void AddRopeFactors() {
    for (const RopeFactors& factors : MakeRopeFactors(shape_)) {
      Add(factors.name, {static_cast<int64_t>(factors.values.size())}, Type::kF32, 0);
      tensors_.back().values = factors.values;
    }
  }

  void Add(std::string name, std::vector<int64_t> dims, Type type, double spread) {
    tensors_.push_back(
        {std::move(name), std::move(dims), type, 0.0f, static_cast<float>(spread), {}, {}});
  }

  std::string Name(const std::string& part) const {
    return absl::StrCat("blk.", layer_, ".", part);
  }

  const ModelShape& shape_;
  const Family& family_;
  const Spreads spreads_;
  int64_t layer_ = 0;
  std::vector<TensorSpec> tensors_;
};

}  // namespace

std::vector<RopeFactors> MakeRopeFactors(const ModelShape& shape) {
  const RopeShape& rope = shape.rope;
  const int64_t pairs = (rope.dims > 0 ? rope.dims : shape.head_dim) / 2;
  switch (rope.scaling) {
    case RopeScaling::kLlama3:
      return {{"rope_freqs.weight", Llama3Factors(rope, pairs)}};
    case RopeScaling::kLongRope: {
      const double stretch =
          2 * static_cast<double>(shape.ctx) / static_cast<double>(rope.original_context);
      return {{"rope_factors_long.weight", Ramp(pairs, stretch)},
              {"rope_factors_short.weight", Ramp(pairs, 2.8)}};
    }
    default:
      return {};
  }
}

int64_t TensorSpec::rows() const {
  int64_t rows = 1;
  for (size_t i = 1; i < dims.size(); ++i) rows *= dims[i];
  return rows;
}

std::vector<TensorSpec> ListTensors(const ModelShape& shape) { return Lister(shape).List(); }

}  // namespace trine
