// The model families that this runtime knows. Each is a file arch_NAME.cc with two functions: one
// reads the metadata that the family has beyond the common numbers, one writes down a transformer
// layer as in the family's paper. Everything around the layers is the same for all families.
// docs/add-an-architecture.md shows how to add one.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/model/arch/config_keys.h"
#include "runtime/model/arch/layer_builder.h"

namespace trine {

struct Architecture {
  const char* name;       // the file's general.architecture
  uint32_t rope_pairing;  // TRINE_ROPE_INTERLEAVED or TRINE_ROPE_HALVES
  NormKind norm;
  // Adds the family's own numbers to `config`, which has the common ones already, checked.
  void (*configure)(ConfigKeys& keys, ModelConfig* config);
  // Appends one layer: x [n_embd, tokens] -> [n_embd, tokens].
  Tensor (*layer)(LayerBuilder& b, Tensor x);
};

// Returns UNIMPLEMENTED with the list of known names if there is no such family.
absl::StatusOr<const Architecture*> FindArchitecture(const std::string& name);

extern const Architecture kLlama, kQwen2, kQwen3, kQwen2Moe, kQwen3Moe, kGemma2, kGemma3, kPhi3,
    kOlmo2, kGranite, kGraniteMoe, kSmolLm3, kStarcoder2, kGptOss;

// ---- Shared by the `configure` of several families ---------------------------------------------

inline void NothingToConfigure(ConfigKeys&, ModelConfig*) {}

// Fails with UNIMPLEMENTED if the file has experts.
void RequireDense(ConfigKeys& keys, ModelConfig* config);
// Fails with INVALID_ARGUMENT if the file has no experts.
void RequireExperts(ConfigKeys& keys, ModelConfig* config);

// Reads attention.sliding_window. In every `period` layers all but the last are windowed, unless
// attention.sliding_window_pattern gives another period or a flag for each layer.
void ReadWindow(ConfigKeys& keys, int64_t period, ModelConfig* config);

}  // namespace trine
