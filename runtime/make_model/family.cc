#include "runtime/make_model/family.h"

namespace trine {
namespace {

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

const Family* FindFamily(std::string_view architecture) {
  for (const Family& family : kFamilies) {
    if (architecture == family.architecture) return &family;
  }
  return nullptr;
}

}  // namespace trine
