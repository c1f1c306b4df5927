// Widths that are no multiple of 256, and heads that are no power of two, find what larger and
// rounder models hide; windows, soft caps and clamps are set so low that they act on every prompt.
#include "runtime/make_model/presets.h"

namespace trine {
namespace {

using quant::Type;

constexpr VocabularyShape Bpe(std::string_view pre, bool add_bos = false) {
  return {.kind = VocabularyKind::kByteLevelBpe, .pre = pre, .add_bos = add_bos};
}
constexpr VocabularyShape SentencePiece(bool add_space_prefix = true) {
  return {.kind = VocabularyKind::kSentencePiece,
          .add_bos = true,
          .add_space_prefix = add_space_prefix};
}

// The usual sizes, to be changed.
constexpr ModelShape Tiny(const char* name, const char* architecture) {
  return {.name = name,
          .architecture = architecture,
          .layers = 3,
          .embd = 96,
          .heads = 6,
          .kv_heads = 2,
          .head_dim = 16,
          .ff = 160,
          .vocab = 331,
          .ctx = 256,
          .type = Type::kF32,
          .expert_type = Type::kF32};
}

constexpr ModelShape TinyLlama() {
  ModelShape s = Tiny("tiny-llama", "llama");
  s.vocabulary = SentencePiece();
  return s;
}

constexpr ModelShape TinyLlama3() {
  ModelShape s = Tiny("tiny-llama3", "llama");
  s.rope = {.base = 500000, .scaling = RopeScaling::kLlama3, .factor = 8, .original_context = 64};
  s.vocabulary = Bpe("llama-bpe", true);
  return s;
}

constexpr ModelShape TinyLlamaYarn() {
  ModelShape s = Tiny("tiny-llama-yarn", "llama");
  s.rope = {.scaling = RopeScaling::kYarn, .factor = 4, .original_context = 64};
  return s;
}

constexpr ModelShape TinyLlamaQ4K() {
  ModelShape s = Tiny("tiny-llama-q4_k", "llama");
  s.embd = 256;
  s.heads = 4;
  s.kv_heads = 1;
  s.head_dim = 64;
  s.ff = 512;
  s.type = Type::kQ4_K;
  return s;
}

constexpr ModelShape TinyMixtral() {
  ModelShape s = Tiny("tiny-mixtral", "llama");
  s.ff = 64;
  s.experts = 4;
  s.experts_used = 2;
  s.vocabulary = SentencePiece();
  return s;
}

constexpr ModelShape TinyQwen2Tied() {
  ModelShape s = Tiny("tiny-qwen2-tied", "qwen2");
  s.tied = true;
  s.rope.base = 1e6;
  s.vocabulary = Bpe("qwen2");
  return s;
}

constexpr ModelShape TinyQwen2Moe() {
  ModelShape s = Tiny("tiny-qwen2moe", "qwen2moe");
  s.experts = 5;
  s.experts_used = 2;
  s.expert_ff = 32;
  s.shared_ff = 48;
  s.vocabulary = Bpe("qwen2");
  return s;
}

constexpr ModelShape TinyQwen3() {
  ModelShape s = Tiny("tiny-qwen3", "qwen3");
  s.head_dim = 32;
  s.vocabulary = Bpe("qwen2");
  return s;
}

constexpr ModelShape TinyQwen3Moe() {
  ModelShape s = Tiny("tiny-qwen3moe", "qwen3moe");
  s.heads = 3;
  s.kv_heads = 1;
  s.head_dim = 32;
  s.experts = 8;
  s.experts_used = 3;
  s.expert_ff = 32;
  s.vocabulary = Bpe("qwen2");
  return s;
}

constexpr ModelShape TinyGemma2() {
  ModelShape s = Tiny("tiny-gemma2", "gemma2");
  s.layers = 4;
  s.heads = 4;
  s.head_dim = 32;
  s.ff = 128;
  s.norm_eps = 1e-6;
  s.tied = true;
  s.window = 16;
  s.attention_softcap = 3;
  s.final_softcap = 5;
  s.vocabulary = SentencePiece(false);
  return s;
}

constexpr ModelShape TinyGemma3() {
  ModelShape s = Tiny("tiny-gemma3", "gemma3");
  s.layers = 7;  // the sixth sees everything
  s.heads = 3;
  s.kv_heads = 1;
  s.head_dim = 32;
  s.ff = 64;
  s.norm_eps = 1e-6;
  s.tied = true;
  s.window = 16;
  s.rope = {.base = 1e6, .window_base = 1e4, .scaling = RopeScaling::kLinear, .factor = 8};
  s.vocabulary = SentencePiece(false);
  return s;
}

constexpr ModelShape TinyPhi3() {
  ModelShape s = Tiny("tiny-phi3", "phi3");
  s.embd = 80;
  s.heads = 5;
  s.kv_heads = 5;
  s.ff = 128;
  s.vocabulary = SentencePiece();
  return s;
}

constexpr ModelShape TinyPhi3Long() {
  ModelShape s = Tiny("tiny-phi3-long", "phi3");
  s.embd = 120;
  s.heads = 5;
  s.kv_heads = 5;
  s.head_dim = 24;
  s.ff = 96;
  s.rope = {.dims = 16,
            .scaling = RopeScaling::kLongRope,
            .original_context = 64,
            .attention_factor = 1.1547005384};  // the root of 1 + ln 4 / ln 64
  s.vocabulary = SentencePiece();
  return s;
}

constexpr ModelShape TinyOlmo2() {
  ModelShape s = Tiny("tiny-olmo2", "olmo2");
  s.heads = 3;
  s.kv_heads = 1;
  s.head_dim = 32;
  s.ff = 128;
  s.norm_eps = 1e-6;
  s.vocabulary = Bpe("dbrx");
  return s;
}

constexpr ModelShape TinyGranite() {
  ModelShape s = Tiny("tiny-granite", "granite");
  s.tied = true;
  s.embedding_scale = 2.5;
  s.residual_scale = 0.6;
  s.attention_scale = 0.3;
  s.logit_scale = 2;
  s.vocabulary = Bpe("refact");
  return s;
}

constexpr ModelShape TinyGraniteMoe() {
  ModelShape s = TinyGranite();
  s.name = "tiny-granitemoe";
  s.architecture = "granitemoe";
  s.ff = 64;
  s.experts = 4;
  s.experts_used = 2;
  return s;
}

constexpr ModelShape TinySmolLm3() {
  ModelShape s = Tiny("tiny-smollm3", "smollm3");
  s.layers = 5;  // the fourth has no rope
  s.ff = 128;
  s.tied = true;
  s.rope.base = 5e6;
  s.vocabulary = Bpe("llama-bpe");
  return s;
}

constexpr ModelShape TinyStarcoder2() {
  ModelShape s = Tiny("tiny-starcoder2", "starcoder2");
  s.ff = 192;
  s.tied = true;
  s.vocabulary = Bpe("starcoder");
  return s;
}

constexpr ModelShape TinyGptOss() {
  ModelShape s = Tiny("tiny-gpt-oss", "gpt-oss");
  s.layers = 4;
  s.head_dim = 32;
  s.ff = 64;
  s.experts = 4;
  s.experts_used = 2;
  s.expert_ff = 64;
  s.window = 16;
  s.rope = {.base = 150000, .scaling = RopeScaling::kYarn, .factor = 8, .original_context = 64};
  s.ff_spread = 3;  // some reach the clamp at 7
  s.vocabulary = Bpe("gpt-4o");
  s.expert_type = Type::kMXFP4;
  return s;
}

constexpr ModelShape kPresets[] = {
    TinyLlama(),      TinyLlama3(),   TinyLlamaYarn(),  TinyLlamaQ4K(), TinyMixtral(),
    TinyQwen2Tied(),  TinyQwen2Moe(), TinyQwen3(),      TinyQwen3Moe(), TinyGemma2(),
    TinyGemma3(),     TinyPhi3(),     TinyPhi3Long(),   TinyOlmo2(),    TinyGranite(),
    TinyGraniteMoe(), TinySmolLm3(),  TinyStarcoder2(), TinyGptOss(),
};

}  // namespace

absl::Span<const ModelShape> TinyPresets() { return kPresets; }

}  // namespace trine
