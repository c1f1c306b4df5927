#include "runtime/make_model/presets.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/gguf/quoted.h"

namespace trine {
namespace {

constexpr PresetAlias kAliases[] = {
    {"qwen2-moe", "qwen1.5-moe-a2.7b"},
    {"qwen3-moe", "qwen3-30b-a3b"},
};

constexpr VocabularyShape Bpe(std::string_view pre, bool add_bos = false) {
  return {.kind = VocabularyKind::kByteLevelBpe, .pre = pre, .add_bos = add_bos};
}
constexpr VocabularyShape SentencePiece(bool add_space_prefix = true) {
  return {.kind = VocabularyKind::kSentencePiece,
          .add_bos = true,
          .add_space_prefix = add_space_prefix};
}

constexpr RopeShape Llama3Rope(double factor) {
  return {
      .base = 500000, .scaling = RopeScaling::kLlama3, .factor = factor, .original_context = 8192};
}

// Gives a shape the usual tiny sizes where it has none.
constexpr ModelShape Tiny(ModelShape s) {
  const auto usually = [](int64_t* size, int64_t value) {
    if (*size == 0) *size = value;
  };
  usually(&s.layers, 3);
  usually(&s.embd, 96);
  usually(&s.heads, 6);
  usually(&s.kv_heads, 2);
  usually(&s.head_dim, 16);
  usually(&s.ff, 160);
  usually(&s.vocab, 331);
  usually(&s.ctx, 256);
  if (s.type == ModelShape().type) s.type = quant::Type::kF32;
  if (s.expert_type == ModelShape().expert_type) s.expert_type = quant::Type::kF32;
  return s;
}

// The sizes are those of the models' published configurations. One model to a few lines, as a
// table.
// clang-format off
constexpr ModelShape kPublishedPresets[] = {
    {.name = "llama-3.1-8b", .architecture = "llama",
     .layers = 32, .embd = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .ff = 14336,
     .vocab = 128256, .ctx = 131072, .rope = Llama3Rope(8), .vocabulary = Bpe("llama-bpe", true)},
    {.name = "llama-3.2-1b", .architecture = "llama",
     .layers = 16, .embd = 2048, .heads = 32, .kv_heads = 8, .head_dim = 64, .ff = 8192,
     .vocab = 128256, .ctx = 131072, .tied = true, .rope = Llama3Rope(32),
     .vocabulary = Bpe("llama-bpe", true)},
    {.name = "llama-3.2-3b", .architecture = "llama",
     .layers = 28, .embd = 3072, .heads = 24, .kv_heads = 8, .head_dim = 128, .ff = 8192,
     .vocab = 128256, .ctx = 131072, .tied = true, .rope = Llama3Rope(32),
     .vocabulary = Bpe("llama-bpe", true)},
    {.name = "mistral-7b", .architecture = "llama",  // v0.3
     .layers = 32, .embd = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .ff = 14336,
     .vocab = 32768, .ctx = 32768, .rope = {.base = 1e6}, .vocabulary = SentencePiece()},
    {.name = "mixtral-8x7b", .architecture = "llama",
     .layers = 32, .embd = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .ff = 14336,
     .vocab = 32000, .ctx = 32768, .experts = 8, .experts_used = 2, .rope = {.base = 1e6},
     .vocabulary = SentencePiece()},
    {.name = "qwen2.5-0.5b", .architecture = "qwen2",
     .layers = 24, .embd = 896, .heads = 14, .kv_heads = 2, .head_dim = 64, .ff = 4864,
     .vocab = 151936, .ctx = 32768, .norm_eps = 1e-6, .tied = true, .rope = {.base = 1e6},
     .vocabulary = Bpe("qwen2")},
    {.name = "qwen2.5-1.5b", .architecture = "qwen2",
     .layers = 28, .embd = 1536, .heads = 12, .kv_heads = 2, .head_dim = 128, .ff = 8960,
     .vocab = 151936, .ctx = 32768, .norm_eps = 1e-6, .tied = true, .rope = {.base = 1e6},
     .vocabulary = Bpe("qwen2")},
    {.name = "qwen2.5-7b", .architecture = "qwen2",
     .layers = 28, .embd = 3584, .heads = 28, .kv_heads = 4, .head_dim = 128, .ff = 18944,
     .vocab = 152064, .ctx = 32768, .norm_eps = 1e-6, .rope = {.base = 1e6},
     .vocabulary = Bpe("qwen2")},
    {.name = "qwen1.5-moe-a2.7b", .architecture = "qwen2moe",
     .layers = 24, .embd = 2048, .heads = 16, .kv_heads = 16, .head_dim = 128, .ff = 5632,
     .vocab = 151936, .ctx = 8192, .norm_eps = 1e-6, .experts = 60, .experts_used = 4,
     .expert_ff = 1408, .shared_ff = 5632, .rope = {.base = 1e6}, .vocabulary = Bpe("qwen2")},
    {.name = "qwen3-0.6b", .architecture = "qwen3",
     .layers = 28, .embd = 1024, .heads = 16, .kv_heads = 8, .head_dim = 128, .ff = 3072,
     .vocab = 151936, .ctx = 40960, .norm_eps = 1e-6, .tied = true, .rope = {.base = 1e6},
     .vocabulary = Bpe("qwen2")},
    {.name = "qwen3-4b", .architecture = "qwen3",
     .layers = 36, .embd = 2560, .heads = 32, .kv_heads = 8, .head_dim = 128, .ff = 9728,
     .vocab = 151936, .ctx = 40960, .norm_eps = 1e-6, .tied = true, .rope = {.base = 1e6},
     .vocabulary = Bpe("qwen2")},
    {.name = "qwen3-30b-a3b", .architecture = "qwen3moe",
     .layers = 48, .embd = 2048, .heads = 32, .kv_heads = 4, .head_dim = 128, .ff = 6144,
     .vocab = 151936, .ctx = 40960, .norm_eps = 1e-6, .experts = 128, .experts_used = 8,
     .expert_ff = 768, .rope = {.base = 1e6}, .vocabulary = Bpe("qwen2")},
    {.name = "gemma2-2b", .architecture = "gemma2",
     .layers = 26, .embd = 2304, .heads = 8, .kv_heads = 4, .head_dim = 256, .ff = 9216,
     .vocab = 256000, .ctx = 8192, .norm_eps = 1e-6, .tied = true, .window = 4096,
     .attention_softcap = 50, .final_softcap = 30, .vocabulary = SentencePiece(false)},
    {.name = "gemma3-1b", .architecture = "gemma3",
     .layers = 26, .embd = 1152, .heads = 4, .kv_heads = 1, .head_dim = 256, .ff = 6912,
     .vocab = 262144, .ctx = 32768, .norm_eps = 1e-6, .tied = true, .window = 512,
     .rope = {.base = 1e6, .window_base = 1e4}, .vocabulary = SentencePiece(false)},
    {.name = "gemma3-4b", .architecture = "gemma3",  // its language model
     .layers = 34, .embd = 2560, .heads = 8, .kv_heads = 4, .head_dim = 256, .ff = 10240,
     .vocab = 262144, .ctx = 131072, .norm_eps = 1e-6, .tied = true, .window = 1024,
     .rope = {.base = 1e6, .window_base = 1e4, .scaling = RopeScaling::kLinear, .factor = 8},
     .vocabulary = SentencePiece(false)},
    {.name = "phi3-mini-4k", .architecture = "phi3",
     .layers = 32, .embd = 3072, .heads = 32, .kv_heads = 32, .head_dim = 96, .ff = 8192,
     .vocab = 32064, .ctx = 4096, .window = 2047, .vocabulary = SentencePiece()},
    {.name = "phi3-mini-128k", .architecture = "phi3",
     .layers = 32, .embd = 3072, .heads = 32, .kv_heads = 32, .head_dim = 96, .ff = 8192,
     .vocab = 32064, .ctx = 131072, .window = 262144,
     .rope = {.scaling = RopeScaling::kLongRope, .original_context = 4096,
              .attention_factor = 1.1902380714},  // the root of 1 + ln 32 / ln 4096
     .vocabulary = SentencePiece()},
    {.name = "olmo2-1b", .architecture = "olmo2",
     .layers = 16, .embd = 2048, .heads = 16, .kv_heads = 16, .head_dim = 128, .ff = 8192,
     .vocab = 100352, .ctx = 4096, .norm_eps = 1e-6, .rope = {.base = 500000},
     .vocabulary = Bpe("dbrx")},
    {.name = "olmo2-7b", .architecture = "olmo2",
     .layers = 32, .embd = 4096, .heads = 32, .kv_heads = 32, .head_dim = 128, .ff = 11008,
     .vocab = 100352, .ctx = 4096, .norm_eps = 1e-6, .rope = {.base = 500000},
     .vocabulary = Bpe("dbrx")},
    {.name = "granite-3.3-2b", .architecture = "granite",
     .layers = 40, .embd = 2048, .heads = 32, .kv_heads = 8, .head_dim = 64, .ff = 8192,
     .vocab = 49159, .ctx = 131072, .tied = true, .rope = {.base = 1e7}, .embedding_scale = 12,
     .residual_scale = 0.22, .attention_scale = 0.015625, .logit_scale = 8,
     .vocabulary = Bpe("refact")},
    {.name = "smollm3-3b", .architecture = "smollm3",
     .layers = 36, .embd = 2048, .heads = 16, .kv_heads = 4, .head_dim = 128, .ff = 11008,
     .vocab = 128256, .ctx = 65536, .norm_eps = 1e-6, .tied = true, .rope = {.base = 5e6},
     .vocabulary = Bpe("llama-bpe")},
    {.name = "starcoder2-3b", .architecture = "starcoder2",
     .layers = 30, .embd = 3072, .heads = 24, .kv_heads = 2, .head_dim = 128, .ff = 12288,
     .vocab = 49152, .ctx = 16384, .tied = true, .rope = {.base = 999999.4420358813},
     .vocabulary = Bpe("starcoder")},
    {.name = "gpt-oss-20b", .architecture = "gpt-oss",
     .layers = 24, .embd = 2880, .heads = 64, .kv_heads = 8, .head_dim = 64, .ff = 2880,
     .vocab = 201088, .ctx = 131072, .experts = 32, .experts_used = 4, .expert_ff = 2880,
     .window = 128,
     .rope = {.base = 150000, .scaling = RopeScaling::kYarn, .factor = 32,
              .original_context = 4096},
     .vocabulary = Bpe("gpt-4o"), .type = quant::Type::kQ8_0, .expert_type = quant::Type::kMXFP4},
    {.name = "tales-27m", .architecture = "qwen2",  // the model that comes with Trine
     .layers = 32, .embd = 256, .heads = 4, .kv_heads = 2, .head_dim = 64, .ff = 768,
     .vocab = 8192, .ctx = 2048, .norm_eps = 1e-6, .tied = true, .vocabulary = Bpe("qwen2"),
     .type = quant::Type::kQ8_0},
};

// Widths that are not multiples of 256, and heads that are not powers of two, reveal errors that
// larger and rounder models hide. Windows, soft caps and clamps are so low that they act on every
// prompt.
constexpr ModelShape kTinyPresets[] = {
    Tiny({.name = "tiny-llama", .architecture = "llama", .vocabulary = SentencePiece()}),
    Tiny({.name = "tiny-llama3", .architecture = "llama",
          .rope = {.base = 500000, .scaling = RopeScaling::kLlama3, .factor = 8,
                   .original_context = 64},
          .vocabulary = Bpe("llama-bpe", true)}),
    Tiny({.name = "tiny-llama-yarn", .architecture = "llama",
          .rope = {.scaling = RopeScaling::kYarn, .factor = 4, .original_context = 64}}),
    Tiny({.name = "tiny-llama-q4_k", .architecture = "llama", .embd = 256, .heads = 4,
          .kv_heads = 1, .head_dim = 64, .ff = 512, .type = quant::Type::kQ4_K}),
    Tiny({.name = "tiny-mixtral", .architecture = "llama", .ff = 64, .experts = 4,
          .experts_used = 2, .vocabulary = SentencePiece()}),
    Tiny({.name = "tiny-qwen2-tied", .architecture = "qwen2", .tied = true, .rope = {.base = 1e6},
          .vocabulary = Bpe("qwen2")}),
    Tiny({.name = "tiny-qwen2moe", .architecture = "qwen2moe", .experts = 5, .experts_used = 2,
          .expert_ff = 32, .shared_ff = 48, .vocabulary = Bpe("qwen2")}),
    Tiny({.name = "tiny-qwen3", .architecture = "qwen3", .head_dim = 32,
          .vocabulary = Bpe("qwen2")}),
    Tiny({.name = "tiny-qwen3moe", .architecture = "qwen3moe", .heads = 3, .kv_heads = 1,
          .head_dim = 32, .experts = 8, .experts_used = 3, .expert_ff = 32,
          .vocabulary = Bpe("qwen2")}),
    Tiny({.name = "tiny-gemma2", .architecture = "gemma2", .layers = 4, .heads = 4, .head_dim = 32,
          .ff = 128, .norm_eps = 1e-6, .tied = true, .window = 16, .attention_softcap = 3,
          .final_softcap = 5, .vocabulary = SentencePiece(false)}),
    Tiny({.name = "tiny-gemma3", .architecture = "gemma3", .layers = 7, .heads = 3, .kv_heads = 1,
          .head_dim = 32, .ff = 64, .norm_eps = 1e-6, .tied = true, .window = 16,
          .rope = {.base = 1e6, .window_base = 1e4, .scaling = RopeScaling::kLinear, .factor = 8},
          .vocabulary = SentencePiece(false)}),  // the sixth layer has no window
    Tiny({.name = "tiny-phi3", .architecture = "phi3", .embd = 80, .heads = 5, .kv_heads = 5,
          .ff = 128, .vocabulary = SentencePiece()}),
    Tiny({.name = "tiny-phi3-long", .architecture = "phi3", .embd = 120, .heads = 5, .kv_heads = 5,
          .head_dim = 24, .ff = 96,
          .rope = {.dims = 16, .scaling = RopeScaling::kLongRope, .original_context = 64,
                   .attention_factor = 1.1547005384},  // the root of 1 + ln 4 / ln 64
          .vocabulary = SentencePiece()}),
    Tiny({.name = "tiny-olmo2", .architecture = "olmo2", .heads = 3, .kv_heads = 1, .head_dim = 32,
          .ff = 128, .norm_eps = 1e-6, .vocabulary = Bpe("dbrx")}),
    Tiny({.name = "tiny-granite", .architecture = "granite", .tied = true, .embedding_scale = 2.5,
          .residual_scale = 0.6, .attention_scale = 0.3, .logit_scale = 2,
          .vocabulary = Bpe("refact")}),
    Tiny({.name = "tiny-granitemoe", .architecture = "granitemoe", .ff = 64, .tied = true,
          .experts = 4, .experts_used = 2, .embedding_scale = 2.5, .residual_scale = 0.6,
          .attention_scale = 0.3, .logit_scale = 2, .vocabulary = Bpe("refact")}),
    Tiny({.name = "tiny-smollm3", .architecture = "smollm3", .layers = 5, .ff = 128, .tied = true,
          .rope = {.base = 5e6}, .vocabulary = Bpe("llama-bpe")}),  // the fourth layer has no rope
    Tiny({.name = "tiny-starcoder2", .architecture = "starcoder2", .ff = 192, .tied = true,
          .vocabulary = Bpe("starcoder")}),
    Tiny({.name = "tiny-gpt-oss", .architecture = "gpt-oss", .layers = 4, .head_dim = 32, .ff = 64,
          .experts = 4, .experts_used = 2, .expert_ff = 64, .window = 16,
          .rope = {.base = 150000, .scaling = RopeScaling::kYarn, .factor = 8,
                   .original_context = 64},
          .vocabulary = Bpe("gpt-4o"), .expert_type = quant::Type::kMXFP4,
          .ff_spread = 3}),  // some values reach the clamp at 7
};
// clang-format on

}  // namespace

absl::Span<const ModelShape> PublishedPresets() { return kPublishedPresets; }
absl::Span<const ModelShape> TinyPresets() { return kTinyPresets; }
absl::Span<const PresetAlias> PresetAliases() { return kAliases; }

absl::StatusOr<ModelShape> FindPreset(std::string_view name) {
  std::string_view wanted = name;
  for (const PresetAlias& alias : kAliases) {
    if (name == alias.alias) wanted = alias.name;
  }
  std::vector<std::string> names;
  for (const auto& presets : {PublishedPresets(), TinyPresets()}) {
    for (const ModelShape& shape : presets) {
      if (wanted == shape.name) return shape;
      names.emplace_back(shape.name);
    }
  }
  for (const PresetAlias& alias : kAliases) names.emplace_back(alias.alias);
  return absl::NotFoundError(absl::StrCat("there is no model ", gguf::Quoted(name),
                                          " to make; there are ", absl::StrJoin(names, ", ")));
}

}  // namespace trine
