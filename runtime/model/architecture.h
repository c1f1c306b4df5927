// The model families this runtime knows. Each is one function that writes a transformer layer down
// as its paper has it; everything around the layers is the same for all.
#ifndef TRINE_RUNTIME_MODEL_ARCHITECTURE_H_
#define TRINE_RUNTIME_MODEL_ARCHITECTURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/model/layer_builder.h"

namespace trine {

struct Architecture {
  const char* name;       // general.architecture
  uint32_t rope_pairing;  // TRINE_ROPE_INTERLEAVED or TRINE_ROPE_HALVES
  // x [n_embd, tokens] -> the same, through one layer.
  Tensor (*layer)(LayerBuilder& b, Tensor x);
};

// UNIMPLEMENTED, with the list of those that are known.
absl::StatusOr<const Architecture*> FindArchitecture(const std::string& name);

Tensor LlamaLayer(LayerBuilder& b, Tensor x);
Tensor Qwen2Layer(LayerBuilder& b, Tensor x);
Tensor Qwen3Layer(LayerBuilder& b, Tensor x);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_ARCHITECTURE_H_
