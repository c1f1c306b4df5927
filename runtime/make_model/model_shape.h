// What a model to be made looks like: its family, its sizes, and the numbers its file states. What
// follows from the family alone is in family.h. A zero means that the model has no such thing.
#ifndef TRINE_RUNTIME_MAKE_MODEL_MODEL_SHAPE_H_
#define TRINE_RUNTIME_MAKE_MODEL_MODEL_SHAPE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/quant/block_types.h"

namespace trine {

enum class RopeScaling {
  kNone,
  kLinear,    // positions divided by `factor`
  kYarn,      // `factor`, `original_context`
  kLlama3,    // `factor`, `original_context`; the file has a factor per pair in rope_freqs
  kLongRope,  // `original_context`, `attention_factor`; short and long factors in the file
};

struct RopeShape {
  int64_t dims = 0;  // rotated of each head; 0: all
  double base = 10000;
  double window_base = 0;  // of the layers with a window, where it is another
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
  bool add_space_prefix = true;  // SentencePiece alone
};

struct ModelShape {
  const char* name = "";  // these two are in static storage
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
  bool tied = false;  // token_embd is the output matrix too

  int64_t experts = 0;
  int64_t experts_used = 0;
  int64_t expert_ff = 0;  // 0: experts are `ff` wide
  int64_t shared_ff = 0;  // of the expert that every token passes

  int64_t window = 0;  // positions a layer sees, in the layers of the family that have a window
  RopeShape rope = {};

  double attention_softcap = 0;
  double final_softcap = 0;
  double embedding_scale = 0;
  double residual_scale = 0;
  double attention_scale = 0;  // 0: one over the root of head_dim
  double logit_scale = 0;      // logits are divided by it

  VocabularyShape vocabulary = {};
  quant::Type type = quant::Type::kQ4_0;         // of the matrices, unless told otherwise
  quant::Type expert_type = quant::Type::kQ4_0;  // of the experts' matrices
  // How wide the values inside the feed-forward network spread: a family that clamps them is
  // tested only when some reach the clamp.
  double ff_spread = 1;
};

// INVALID_ARGUMENT names the size that no reader of such files would take.
absl::Status CheckShape(const ModelShape& shape);

}  // namespace trine

#endif  // TRINE_RUNTIME_MAKE_MODEL_MODEL_SHAPE_H_
