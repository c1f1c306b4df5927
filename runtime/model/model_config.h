// The numbers of a model that its metadata states: sizes, norm, rope. Read once, checked, plain
// data.
#ifndef TRINE_RUNTIME_MODEL_MODEL_CONFIG_H_
#define TRINE_RUNTIME_MODEL_MODEL_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"

namespace trine {

struct RopeConfig {
  int64_t dims = 0;           // of a head that are rotated
  double base = 10000.0;      // of the frequencies
  double position_scale = 1;  // linear scaling: positions are multiplied by it
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
  int64_t n_ff = 0;
  int64_t n_vocab = 0;
  int64_t n_ctx_train = 0;
  float norm_eps = 0;
  RopeConfig rope;

  float attention_scale() const;  // 1 / sqrt(head_dim_k)
};

// UNIMPLEMENTED for an architecture, or a variant of one, that is not known here; INVALID_ARGUMENT
// for numbers that make no sense. Both name the key and the value.
absl::StatusOr<ModelConfig> ReadModelConfig(const gguf::File& file);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_MODEL_CONFIG_H_
