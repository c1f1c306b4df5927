// The model families this runtime knows. Each is a file arch_NAME.cc with two functions: one reads
// what the family's metadata has beyond the common numbers, one writes a transformer layer down as
// its paper has it. Everything around the layers is the same for all.
// docs/add-an-architecture.md shows how one is added.
#ifndef TRINE_RUNTIME_MODEL_ARCHITECTURE_H_
#define TRINE_RUNTIME_MODEL_ARCHITECTURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/model/config_keys.h"
#include "runtime/model/layer_builder.h"

namespace trine {

struct Architecture {
  const char* name;       // general.architecture
  uint32_t rope_pairing;  // TRINE_ROPE_INTERLEAVED or TRINE_ROPE_HALVES
  NormKind norm;
  // Fills in what the common numbers don't say. Those, and their bounds, are in `config` already.
  void (*configure)(ConfigKeys& keys, ModelConfig* config);
  // x [n_embd, tokens] -> the same, through one layer.
  Tensor (*layer)(LayerBuilder& b, Tensor x);
};

// UNIMPLEMENTED, with the list of those that are known.
absl::StatusOr<const Architecture*> FindArchitecture(const std::string& name);

extern const Architecture kLlama, kQwen2, kQwen3, kQwen2Moe, kQwen3Moe, kGemma2, kGemma3, kPhi3,
    kOlmo2, kGranite, kGraniteMoe, kSmolLm3, kStarcoder2, kGptOss;

// ---- What several families share, for their `configure` ----------------------------------------

inline void NothingToConfigure(ConfigKeys&, ModelConfig*) {}

// UNIMPLEMENTED for a file with experts.
void RequireDense(ConfigKeys& keys, ModelConfig* config);
// INVALID_ARGUMENT for a file without.
void RequireExperts(ConfigKeys& keys, ModelConfig* config);

// Reads attention.sliding_window. Of every `period` layers all but the last are windowed, unless
// attention.sliding_window_pattern says otherwise: another period, or a flag for each layer.
void ReadWindow(ConfigKeys& keys, int64_t period, ModelConfig* config);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_ARCHITECTURE_H_
