#include "runtime/make_model/model_shape.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/make_model/vocabulary.h"

namespace trine {
namespace {

constexpr int64_t kMaxLayers = 512;  // that other engines read as well
constexpr int64_t kMaxExperts = 512;
constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxContext = int64_t{1} << 30;

// Keeps the first error.
class Checker {
 public:
  explicit Checker(const ModelShape& shape) : shape_(shape) {}

  void Range(const char* what, int64_t value, int64_t min, int64_t max) {
    Require(value >= min && value <= max,
            absl::StrCat(what, " is ", value, "; expected ", min, " to ", max));
  }
  void Require(bool condition, const std::string& why) {
    if (condition || !status_.ok()) return;
    status_ = Invalid(shape_.name, ": ", why);
  }
  const absl::Status& status() const { return status_; }

 private:
  const ModelShape& shape_;
  absl::Status status_;
};

void CheckSizes(const ModelShape& s, Checker* check) {
  check->Range("the number of layers", s.layers, 1, kMaxLayers);
  check->Range("the width", s.embd, 1, kMaxWidth);
  check->Range("the number of heads", s.heads, 1, kMaxHeads);
  check->Range("the number of key-value heads", s.kv_heads, 1, s.heads);
  check->Range("the length of a head", s.head_dim, 2, kMaxWidth);
  check->Range("the width of the feed-forward network", s.ff, 1, kMaxWidth);
  check->Range("the vocabulary", s.vocab, kMinVocabulary, kMaxVocabulary);
  check->Range("the context", s.ctx, 1, kMaxContext);
  check->Range("the window", s.window, 0, kMaxContext);
  check->Range("the number of experts", s.experts, 0, kMaxExperts);
  check->Range("the width of an expert", s.expert_ff, 0, kMaxWidth);
  check->Range("the width of the shared expert", s.shared_ff, 0, kMaxWidth);
  check->Range("the number of experts used", s.experts_used, s.experts > 0 ? 1 : 0, s.experts);
  check->Require(s.norm_eps > 0 && s.norm_eps < 1, "the norm's epsilon is not between 0 and 1");
}

void CheckRope(const ModelShape& s, Checker* check) {
  const int64_t dims = s.rope.dims > 0 ? s.rope.dims : s.head_dim;
  check->Require(dims % 2 == 0 && dims <= s.head_dim,
                 absl::StrCat("rope turns ", dims, " values of a head of ", s.head_dim));
  check->Require(s.rope.base > 1, "the base of rope is not above 1");
  const bool stretched = s.rope.scaling == RopeScaling::kYarn ||
                         s.rope.scaling == RopeScaling::kLlama3 ||
                         s.rope.scaling == RopeScaling::kLongRope;
  if (stretched) check->Range("the original context", s.rope.original_context, 1, kMaxContext);
  if (s.rope.scaling == RopeScaling::kLlama3) {
    check->Require((dims & (dims - 1)) == 0,
                   absl::StrCat("rope turns ", dims,
                                " values; Llama 3's factors are made for a "
                                "power of two alone"));
  }
}

void CheckFamily(const ModelShape& s, const Family& family, Checker* check) {
  check->Require(s.heads % s.kv_heads == 0, absl::StrCat(s.heads, " heads are no multiple of ",
                                                         s.kv_heads, " key-value heads"));
  check->Require(!family.square || s.heads * s.head_dim == s.embd,
                 absl::StrCat(s.heads, " heads of ", s.head_dim, " are not the width ", s.embd,
                              ", as ", s.architecture, " needs it"));
  check->Require(!family.must_tie || s.tied,
                 absl::StrCat(s.architecture, " has no output matrix of its own"));
  check->Require(!family.never_ties || !s.tied,
                 absl::StrCat(s.architecture, " needs an output matrix of its own"));
}

constexpr Family kFamilies[] = {
    {.architecture = "llama"},
    {.architecture = "qwen2", .qkv_bias = true, .square = true},
    {.architecture = "qwen2moe",
     .qkv_bias = true,
     .shared_expert_gate = true,
     .square = true,
     .never_ties = true},
    {.architecture = "qwen3", .qk_norm = QkNorm::kHead},
    {.architecture = "qwen3moe", .qk_norm = QkNorm::kHead},
    {.architecture = "gemma2", .post_norms = true, .scales_embedding = true, .must_tie = true},
    {.architecture = "gemma3",
     .post_norms = true,
     .qk_norm = QkNorm::kHead,
     .scales_embedding = true},
    {.architecture = "phi3", .fused = true, .square = true},
    {.architecture = "olmo2",
     .pre_norms = false,
     .post_norms = true,
     .qk_norm = QkNorm::kFull,
     .square = true,
     .never_ties = true},
    {.architecture = "granite"},
    {.architecture = "granitemoe"},
    {.architecture = "smollm3"},
    {.architecture = "starcoder2",
     .layer_norm = true,
     .qkv_bias = true,
     .attention_output_bias = true,
     .gated = false,
     .ff_bias = true,
     .square = true},
    {.architecture = "gpt-oss",
     .qkv_bias = true,
     .attention_output_bias = true,
     .ff_bias = true,
     .sinks = true,
     .never_ties = true,
     .ff_norm = "post_attention_norm"},
};

}  // namespace

absl::Status CheckShape(const ModelShape& shape) {
  const Family* family = FindFamily(shape.architecture);
  if (family == nullptr) {
    return Invalid(shape.name, ": the architecture '", shape.architecture, "' is not known here");
  }
  Checker check(shape);
  CheckSizes(shape, &check);
  if (check.status().ok()) CheckRope(shape, &check);
  if (check.status().ok()) CheckFamily(shape, *family, &check);
  return check.status();
}

const Family* FindFamily(std::string_view architecture) {
  for (const Family& family : kFamilies) {
    if (architecture == family.architecture) return &family;
  }
  return nullptr;
}

}  // namespace trine
