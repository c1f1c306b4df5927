// Describes a model that make_model.h is to make: its family, its sizes, and the numbers in its
// file. A number that is 0 stands for a feature that the model does not have, unless its comment
// says otherwise.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/quant/block_types.h"

namespace trine {

enum class RopeScaling {
  kNone,
  kLinear,    // divides positions by `factor`
  kYarn,      // uses `factor` and `original_context`
  kLlama3,    // uses both, too; rope_freqs.weight in the file has a divisor for each pair
  kLongRope,  // uses `original_context`, `attention_factor`; the file has short and long factors
};

struct RopeShape {
  int64_t dims = 0;  // rotated values of each head; 0: all
  double base = 10000;
  double window_base = 0;  // the base in layers with a window; 0: they use `base`
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 0;
  int64_t original_context = 0;
  double attention_factor = 0;
};

enum class VocabularyKind { kByteLevelBpe, kSentencePiece };

struct VocabularyShape {
  VocabularyKind kind = VocabularyKind::kByteLevelBpe;
  std::string_view pre = "gpt-2";  // how text is split before byte-level BPE
  bool add_bos = false;
  bool add_space_prefix = true;  // for SentencePiece only
};

struct ModelShape {
  const char* name = "";  // points to static storage, like `architecture`
  const char* architecture = "";
  int64_t layers = 0;
  int64_t embd = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ff = 0;
  int64_t vocab = 0;
  int64_t ctx = 0;
  double norm_eps = 1e-5;
  bool tied = false;  // token_embd is also the output matrix

  int64_t experts = 0;
  int64_t experts_used = 0;
  double router_skew = 1;  // how many times larger a tenth of a router's logits is (skew.h)
  int64_t expert_ff = 0;   // 0: experts are `ff` wide
  int64_t shared_ff = 0;   // the width of the shared expert, which every token uses

  int64_t window = 0;  // positions that a layer with a window sees
  RopeShape rope = {};

  double attention_softcap = 0;
  double final_softcap = 0;
  double embedding_scale = 0;
  double residual_scale = 0;
  double attention_scale = 0;  // 0: one over the root of head_dim
  double logit_scale = 0;      // logits are divided by it

  VocabularyShape vocabulary = {};
  // The types of the matrices, and of the experts' matrices. MakeModelOptions::mix overrides both.
  quant::Type type = quant::Type::kQ4_0;
  quant::Type expert_type = quant::Type::kQ4_0;
  // The spread of the values inside the feed-forward network. Families that clamp these values need
  // a larger one, so that some values reach the clamp and tests cover it.
  double ff_spread = 1;
};

// Returns INVALID_ARGUMENT, naming the first wrong size, if no reader would accept a file of this
// shape.
absl::Status CheckShape(const ModelShape& shape);

// The way in which queries and keys are normed.
enum class QkNorm {
  kNone,
  kHead,  // each head by itself, with one weight per value of a head
  kFull,  // all heads of a token together
};

// The tensors of an architecture in a GGUF file, where they differ from Llama's.
struct Family {
  const char* architecture;
  bool pre_norms = true;    // norms before attention and before the feed-forward network
  bool post_norms = false;  // norms after each, before the result is added to the residual
  bool layer_norm = false;  // true: layer norm with a bias; false: RMS norm
  bool qkv_bias = false;
  bool attention_output_bias = false;
  QkNorm qk_norm = QkNorm::kNone;
  bool fused = false;  // q, k and v are one matrix, gate and up are one
  bool gated = true;   // the feed-forward network has a gate matrix
  bool ff_bias = false;
  bool scales_embedding = false;     // multiplies embeddings by the root of the width
  bool sinks = false;                // each head has a logit in the softmax that has no value
  bool shared_expert_gate = false;   // a vector gives the shared expert's weight for each token
  bool square = false;               // heads * head_dim must be the width
  bool must_tie = false;             // readers don't know output.weight
  bool never_ties = false;           // readers require output.weight
  const char* ff_norm = "ffn_norm";  // the name of the norm before the feed-forward network
};

// Returns null for an unknown architecture.
const Family* FindFamily(std::string_view architecture);

}  // namespace trine
