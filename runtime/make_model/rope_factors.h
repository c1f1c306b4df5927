// The factors by which long-context models stretch the waves of their rotary embeddings.
#ifndef TRINE_RUNTIME_MAKE_MODEL_ROPE_FACTORS_H_
#define TRINE_RUNTIME_MAKE_MODEL_ROPE_FACTORS_H_

#include <string>
#include <vector>

#include "runtime/make_model/model_shape.h"

namespace trine {

struct RopeFactors {
  std::string name;  // of the tensor
  std::vector<float> values;
};

// Llama 3's are computed as its authors published them. LongRoPE's are found by search for each
// model; here they are ramps of the same kind. Empty for the other ways of scaling.
std::vector<RopeFactors> MakeRopeFactors(const ModelShape& shape);

}  // namespace trine

#endif  // TRINE_RUNTIME_MAKE_MODEL_ROPE_FACTORS_H_
