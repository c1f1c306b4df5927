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

// The parameters of YaRN, in turns over the original context. Pairs that turn `beta_fast` times or
// more keep their frequency, pairs that turn `beta_slow` times or less have it scaled, and pairs in
// between get a mixture.
struct YarnConfig {
  double beta_fast = 32;
  double beta_slow = 1;
};

// How frequencies change for a longer context than the model was first trained with. kLinear: all
// are scaled by position_scale. kYarn: those of some pairs are (YarnConfig). kLongRope: each is
// divided by a factor of its own (ReadRopeFactors).
enum class RopeScalingType { kNone, kLinear, kYarn, kLongRope };

// The rotary positions of some layers. Pairs of values of a head are rotated by angles: a pair's
// frequency times the position.
struct RopeConfig {
  int64_t dims = 0;           // values of a head that are rotated, two in a pair
  double base = 10000.0;      // the frequency of pair i is base^(-2 i / dims)
  double position_scale = 1;  // factor for positions, and so for frequencies
  double magnitude = 1;       // factor for cosines and sines
  RopeScalingType scaling = RopeScalingType::kNone;
  int64_t original_context = 0;  // the context before it was extended, for YaRN and long rope
  YarnConfig yarn;
};

// Reads the keys rope.*, for heads of `head_dim` values and a model trained with `context`
// positions. After a failure, which keys.status() has, the result means nothing.
RopeConfig ReadRopeConfig(ConfigKeys& keys, int64_t head_dim, int64_t context);

// Returns the divisors of the frequencies, one per pair: Llama 3's rope_freqs.weight, or the
// factors of long rope. `context` is the context that is used: the long factors are for one that is
// longer than config.original_context, the short ones for any other. Returns none if the file has
// none. Returns INVALID_ARGUMENT, naming the tensor, if it makes no sense or if long rope lacks it.
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
  float weight_scale = 1;   // factor of the weights with which experts' results are added
};

// The numbers of a model.
struct ModelConfig {
  std::string architecture;
  std::string name;
  int64_t n_layers = 0;
  int64_t n_embd = 0;  // the width of the hidden state
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim_k = 0;  // values of a head of q or k
  int64_t head_dim_v = 0;  // values of a head of v
  int64_t n_ff = 0;        // the width of a dense feed-forward; may be 0 if all layers have experts
  int64_t n_vocab = 0;
  int64_t n_ctx_train = 0;  // the positions that the model was trained with
  float norm_eps = 0;
  ExpertConfig experts;

  float attention_scale = 0;    // factor of the scores; mostly 1 / sqrt(head_dim_k)
  float attention_softcap = 0;  // 0: none
  int64_t window = 0;           // positions that a token sees in a windowed layer, its own included
  std::vector<bool> windowed;   // by layer; empty: no layer is
  std::vector<bool> unrotated;  // by layer: it has no rotary positions; empty: no layer is

  RopeConfig rope;
  std::optional<RopeConfig> rope_windowed;  // for windowed layers; nullopt: `rope` is for all

  // Factors, and a cap. A factor of 1 and a cap of 0 do nothing.
  float embedding_scale = 1;  // of the embedding's rows
  float residual_scale = 1;   // of what attention and feed-forward add to the hidden state
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
