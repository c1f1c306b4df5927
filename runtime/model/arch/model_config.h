// The numbers of a model from its metadata: sizes, norms, positions, experts. Plain data, which
// ReadModelConfig (read_model.h) reads and checks once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/config_keys.h"

namespace trine {

// The parameters of YaRN. Pairs that turn often over the original context keep their frequency,
// pairs that turn seldom have it scaled, and pairs in between get a mixture.
struct YarnConfig {
  double beta_fast = 32;
  double beta_slow = 1;
};

enum class RopeScalingType { kNone, kLinear, kYarn, kLongRope };

// The rotary positions of some layers.
struct RopeConfig {
  int64_t dims = 0;           // values of a head that are rotated
  double base = 10000.0;      // the base of the frequencies
  double position_scale = 1;  // factor for positions
  double magnitude = 1;       // factor for cosines and sines
  RopeScalingType scaling = RopeScalingType::kNone;
  int64_t original_context = 0;  // the context before it was extended, for YaRN and long rope
  YarnConfig yarn;
};

// Reads the keys rope.*, for heads of `head_dim` values and a model trained with `context`
// positions.
RopeConfig ReadRopeConfig(ConfigKeys& keys, int64_t head_dim, int64_t context);

// Returns the divisors of the frequencies, one per pair: Llama 3's rope_freqs.weight, or the short
// or long factors of long rope, depending on the context. Returns none if the file has none.
// Returns INVALID_ARGUMENT, naming the tensor, if it makes no sense.
absl::StatusOr<std::vector<float>> ReadRopeFactors(const gguf::File& file, const RopeConfig& config,
                                                   int64_t context);

// Returns whether ReadRopeFactors may read the tensor, for some context.
bool IsRopeFactors(std::string_view tensor_name);

// A mixture of experts: each token goes through `used` of `count` feed-forwards.
struct ExpertConfig {
  int64_t count = 0;  // 0: the model has no experts
  int64_t used = 0;
  int64_t n_ff = 0;         // the width of one expert
  int64_t n_ff_shared = 0;  // the width of the expert that every token uses; 0: none
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
  int64_t n_ff = 0;  // the width of a dense feed-forward
  int64_t n_vocab = 0;
  int64_t n_ctx_train = 0;
  float norm_eps = 0;
  ExpertConfig experts;

  float attention_scale = 0;    // factor of the scores; mostly 1 / sqrt(head_dim_k)
  float attention_softcap = 0;  // 0: none
  int64_t window = 0;           // positions that a token sees in a windowed layer, its own included
  std::vector<bool> windowed;   // by layer; empty: no layer is
  std::vector<bool> unrotated;  // by layer: it has no rotary positions; empty: no layer is

  RopeConfig rope;
  std::optional<RopeConfig> rope_windowed;  // for windowed layers; nullopt: `rope` is for all

  // A scale of 1 and a cap of 0 do nothing.
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

}  // namespace trine
