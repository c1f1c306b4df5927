// The numbers of a model that its metadata states: sizes, norms, positions, experts. Read once,
// checked, plain data.
#ifndef TRINE_RUNTIME_MODEL_MODEL_CONFIG_H_
#define TRINE_RUNTIME_MODEL_MODEL_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/rope_config.h"

namespace trine {

// A mixture of experts: each token goes through `used` of `count` feed-forwards.
struct ExpertConfig {
  int64_t count = 0;  // 0: none
  int64_t used = 0;
  int64_t n_ff = 0;         // of one expert
  int64_t n_ff_shared = 0;  // of the one every token goes through; 0: there is none
  float weight_scale = 1;
};

struct ModelConfig {
  std::string architecture;
  std::string name;
  int64_t n_layers = 0;
  int64_t n_embd = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim_k = 0;
  int64_t head_dim_v = 0;
  int64_t n_ff = 0;  // of a dense feed-forward
  int64_t n_vocab = 0;
  int64_t n_ctx_train = 0;
  float norm_eps = 0;
  ExpertConfig experts;

  float attention_scale = 0;    // of the scores: 1 / sqrt(head_dim_k) unless the model says else
  float attention_softcap = 0;  // 0: none
  int64_t window = 0;           // positions a windowed layer sees, its own included
  std::vector<bool> windowed;   // by layer; empty: none is
  std::vector<bool> unrotated;  // layers without rotary positions; empty: none is

  RopeConfig rope;
  std::optional<RopeConfig> rope_windowed;  // of windowed layers, where they have their own

  // 1 or 0, where they do nothing.
  float embedding_scale = 1;
  float residual_scale = 1;
  float logit_scale = 1;
  float logit_softcap = 0;

  bool IsWindowed(int64_t layer) const {
    return !windowed.empty() && windowed[static_cast<size_t>(layer)];
  }
  bool IsRotated(int64_t layer) const {
    return unrotated.empty() || !unrotated[static_cast<size_t>(layer)];
  }
};

// UNIMPLEMENTED for an architecture, or a variant of one, that is not known here; INVALID_ARGUMENT
// for numbers that make no sense. Both name the key and the value.
absl::StatusOr<ModelConfig> ReadModelConfig(const gguf::File& file);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_MODEL_CONFIG_H_
