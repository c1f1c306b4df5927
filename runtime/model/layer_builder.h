// The vocabulary in which architectures are written down. A builder appends ops to a segment's
// graph; the first thing that goes wrong (a tensor missing or of another shape) is kept, and the
// rest of the description runs on to no effect.
#ifndef TRINE_RUNTIME_MODEL_LAYER_BUILDER_H_
#define TRINE_RUNTIME_MODEL_LAYER_BUILDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/model/segment_graph.h"

namespace trine {

struct Tensor {
  TensorId id = TRINE_NONE;
};

// Queries, keys and values: [head_dim, heads, tokens] each.
struct Qkv {
  Tensor q, k, v;
};

enum class Bias { kNone, kIfPresent, kRequired };
enum class NormKind { kRms, kLayer };
enum class Activation { kSilu, kGelu, kClampedSwiglu };

// How a token's experts are chosen and weighed.
struct ExpertRouting {
  uint32_t scoring = TRINE_MOE_SOFTMAX;  // TRINE_MOE_...
  bool normalize = false;                // the chosen experts' weights add up to 1
  Activation activation = Activation::kSilu;
  Bias bias = Bias::kNone;  // of router and experts
};

class LayerBuilder {
 public:
  LayerBuilder(const gguf::File& file, const ModelConfig& config, const SegmentLimits& limits,
               uint32_t rope_pairing, NormKind norm, SegmentGraph* segment)
      : file_(file),
        config_(config),
        limits_(limits),
        rope_pairing_(rope_pairing),
        norm_(norm),
        segment_(segment) {}

  const ModelConfig& config() const { return config_; }
  const absl::Status& status() const { return status_; }

  // Whether ops overwrite their input where nothing else reads it.
  void set_in_place(bool in_place) { in_place_ = in_place; }

  // Names below are those of GGUF without the "blk.N." in front and the ".weight" behind.
  void BeginLayer(int64_t layer) { layer_ = layer; }
  void EndLayers() { layer_ = kOutside; }

  // ---- Parts of layers

  // Each row of dims[0] values normed in the architecture's way, times the weight (plus the bias,
  // of a layer norm).
  Tensor Norm(Tensor x, const std::string& name);
  // W x (+ b): x [k, tokens] -> [n_out, tokens].
  Tensor Linear(Tensor x, const std::string& name, int64_t n_out, Bias bias = Bias::kNone);
  // attn_q, attn_k and attn_v, or all three from attn_qkv where the file has that.
  Qkv Project(Tensor x, Bias bias = Bias::kNone);
  // q and k turned to their positions, in a layer that has such.
  Qkv Rotate(Qkv p);
  // Stores k and v, then attends within the layer's window: -> [head_dim_v * n_heads, tokens].
  // `sinks` names a weight with a logit for each head that takes part in the softmax and no more.
  Tensor Attend(Qkv p, const std::string& sinks = "");
  // ffn_down(activation(ffn_gate x) * ffn_up x). `suffix` is put behind the three names; without
  // a gate in the file, ffn_up holds both, the gate first.
  Tensor GatedFfn(Tensor x, Activation activation, Bias bias = Bias::kNone,
                  const std::string& suffix = "");
  // ffn_down(activation(ffn_up x)).
  Tensor Ffn(Tensor x, Activation activation, Bias bias = Bias::kNone);
  // The router ffn_gate_inp and the experts ffn_gate_exps, ffn_up_exps and ffn_down_exps.
  Tensor Experts(Tensor x, const ExpertRouting& routing);
  // x in shares of 0 to 1, one per token: sigmoid(name x).
  Tensor SigmoidGate(Tensor x, const std::string& name);

  // ---- Steps

  Tensor Add(Tensor a, Tensor b);
  Tensor Mul(Tensor a, Tensor b);
  Tensor Scale(Tensor x, float scale);  // x itself for a scale of 1
  Tensor Softcap(Tensor x, float cap);  // x itself for a cap of 0
  // [head_dim * heads, tokens] -> [head_dim, heads, tokens], the same memory.
  Tensor Heads(Tensor x, int64_t head_dim, int64_t heads);

  // ---- Around the layers

  // Row ids[i] of a table with n_rows rows.
  Tensor Embed(TensorId ids, const std::string& name, int64_t n_rows);
  // Rows of x picked by index: x [k, tokens] -> [k, output rows].
  Tensor PickRows(Tensor x, TensorId indices);

  // A weight with this shape, or TRINE_NONE with the status set. Dimensions of 1 at the end do not
  // count.
  TensorId Weight(const std::string& full_name, const Shape& shape, bool as_f32);
  bool Has(const std::string& full_name) const { return file_.FindTensor(full_name) != nullptr; }

 private:
  static constexpr int64_t kOutside = -1;

  OpGraph& graph() { return segment_->graph; }
  bool HasWeight(const std::string& name) const { return Has(FullName(name, ".weight")); }
  std::string FullName(const std::string& name, const char* suffix) const;
  TensorId BiasOf(const std::string& name, const Shape& shape, Bias bias);
  TensorId Cache(uint32_t dtype, int64_t head_dim);
  Shape ShapeOf(Tensor x) const;
  Tensor RotateOne(Tensor x);
  Tensor Glu(Activation activation, Tensor gate, Tensor up);
  // Views of x: `count` values of each row from `first` on; the same of rows [n, tokens], as heads.
  Tensor Columns(Tensor x, int64_t first, int64_t count);
  Tensor HeadColumns(Tensor x, int64_t first, int64_t head_dim, int64_t heads);
  // x [k, used or 1, tokens] -> [n_out, used, tokens] through each token's experts.
  Tensor ExpertLinear(Tensor x, TensorId ids, const std::string& name, int64_t n_out, Bias bias);
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const gguf::File& file_;
  const ModelConfig& config_;
  const SegmentLimits& limits_;
  uint32_t rope_pairing_;
  NormKind norm_;
  SegmentGraph* segment_;
  int64_t layer_ = kOutside;
  bool in_place_ = true;
  absl::Status status_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_LAYER_BUILDER_H_
