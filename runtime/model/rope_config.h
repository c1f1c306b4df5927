// Rotary positions as a model's metadata describes them.
#ifndef TRINE_RUNTIME_MODEL_ROPE_CONFIG_H_
#define TRINE_RUNTIME_MODEL_ROPE_CONFIG_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/config_keys.h"

namespace trine {

// YaRN: pairs that turn often over the original context keep their frequency, those that turn
// seldom have it scaled, those between get a mixture.
struct YarnConfig {
  double beta_fast = 32;
  double beta_slow = 1;
};

enum class RopeScalingType { kNone, kLinear, kYarn, kLongRope };

struct RopeConfig {
  int64_t dims = 0;           // of a head that are rotated
  double base = 10000.0;      // of the frequencies
  double position_scale = 1;  // positions are multiplied by it
  double magnitude = 1;       // cosines and sines are multiplied by it
  RopeScalingType scaling = RopeScalingType::kNone;
  int64_t original_context = 0;  // before it was extended: for YaRN and long rope
  YarnConfig yarn;
};

// Reads rope.*, for heads of `head_dim` values and a model trained with `context` positions.
RopeConfig ReadRopeConfig(ConfigKeys& keys, int64_t head_dim, int64_t context);

// What divides the frequencies, one per pair: Llama 3's rope_freqs.weight, or the short or long
// factors of long rope, as the context asks for. Empty: none. INVALID_ARGUMENT names the tensor.
absl::StatusOr<std::vector<float>> ReadRopeFactors(const gguf::File& file, const RopeConfig& config,
                                                   int64_t context);

// Tensors that ReadRopeFactors may read, whichever it takes.
bool IsRopeFactors(std::string_view tensor_name);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_ROPE_CONFIG_H_
