// What the architectures of GGUF files differ in, as far as their tensors go.
#ifndef TRINE_RUNTIME_MAKE_MODEL_FAMILY_H_
#define TRINE_RUNTIME_MAKE_MODEL_FAMILY_H_

#include <string_view>

namespace trine {

enum class QkNorm {
  kNone,
  kHead,  // one weight per value of a head
  kFull,  // over all heads of a token
};

struct Family {
  const char* architecture;
  bool pre_norms = true;    // of what attention and feed-forward network take
  bool post_norms = false;  // of what they give, before it is added to the residual
  bool layer_norm = false;  // with a bias; else RMS norm
  bool qkv_bias = false;
  bool attention_output_bias = false;
  QkNorm qk_norm = QkNorm::kNone;
  bool fused = false;  // q, k and v in one matrix, gate and up in one
  bool gated = true;   // the feed-forward network has a gate matrix
  bool ff_bias = false;
  bool scales_embedding = false;    // by the root of the width
  bool sinks = false;               // one logit per head that attends to nothing
  bool shared_expert_gate = false;  // a vector that weighs the shared expert
  bool square = false;              // heads * head_dim is taken to be the width
  bool must_tie = false;            // readers know no output.weight
  bool never_ties = false;          // readers demand output.weight
  const char* ff_norm = "ffn_norm";
};

// Null for an architecture that is not known here.
const Family* FindFamily(std::string_view architecture);

}  // namespace trine

#endif  // TRINE_RUNTIME_MAKE_MODEL_FAMILY_H_
