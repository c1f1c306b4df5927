// The operations in which architectures are written down. A builder appends ops to a segment's
// graph. It keeps the first failure (a tensor that is missing or has another shape) in status();
// calls after that have no effect.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/model/arch/segment_graph.h"

namespace trine {

// A tensor of the segment's graph.
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

// The rule by which a token's experts are chosen and weighted.
struct ExpertRouting {
  uint32_t scoring = TRINE_MOE_SOFTMAX;  // TRINE_MOE_...
  bool normalize = false;                // the chosen experts' weights add up to 1
  Activation activation = Activation::kSilu;
  Bias bias = Bias::kNone;  // the biases of router and experts
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

  // Lets ops overwrite their input if nothing else reads it.
  void set_in_place(bool in_place) { in_place_ = in_place; }
  // Divides the experts of layers; null: of none. `division` must outlive the builder.
  void set_division(const ExpertDivision* division) { division_ = division; }

  // Names below are GGUF's without the prefix "blk.N." and the suffix ".weight".
  void BeginLayer(int64_t layer) { layer_ = layer; }
  void EndLayers() { layer_ = kOutside; }

  // ---- Parts of layers

  // Normalizes each row of dims[0] values with the architecture's norm and multiplies it by the
  // weight. A layer norm also adds the bias.
  Tensor Norm(Tensor x, const std::string& name);
  // Computes W x (+ b): x [k, tokens] -> [n_out, tokens].
  Tensor Linear(Tensor x, const std::string& name, int64_t n_out, Bias bias = Bias::kNone);
  // Multiplies with attn_q, attn_k and attn_v, or with attn_qkv if the file has that.
  Qkv Project(Tensor x, Bias bias = Bias::kNone);
  // Rotates q and k by their positions, unless the layer has no rotary positions.
  Qkv Rotate(Qkv p);
  // Stores k and v in the layer's cache, then attends within the layer's window. Returns
  // [head_dim_v * n_heads, tokens]. `sinks` names a weight with one logit per head, which takes
  // part in the softmax but has no value.
  Tensor Attend(Qkv p, const std::string& sinks = "");
  // Computes ffn_down(activation(ffn_gate x) * ffn_up x). `suffix` is appended to the three names.
  // If the file has no gate, ffn_up holds both, the gate first.
  Tensor GatedFfn(Tensor x, Activation activation, Bias bias = Bias::kNone,
                  const std::string& suffix = "");
  // Computes ffn_down(activation(ffn_up x)).
  Tensor Ffn(Tensor x, Activation activation, Bias bias = Bias::kNone);
  // Computes a mixture of experts with the router ffn_gate_inp and the experts ffn_gate_exps,
  // ffn_up_exps and ffn_down_exps. The file may hold the first two as one, ffn_gate_up_exps.
  Tensor Experts(Tensor x, const ExpertRouting& routing);
  // Returns one factor for each token, between 0 and 1: sigmoid(W x), where `name` is the weight W.
  Tensor SigmoidGate(Tensor x, const std::string& name);

  // ---- Steps

  Tensor Add(Tensor a, Tensor b);
  Tensor Mul(Tensor a, Tensor b);
  Tensor Scale(Tensor x, float scale);  // returns x if scale is 1
  Tensor Softcap(Tensor x, float cap);  // returns x if cap is 0
  // Returns x [head_dim * heads, tokens] as [head_dim, heads, tokens], a view of the same memory.
  Tensor Heads(Tensor x, int64_t head_dim, int64_t heads);

  // ---- Around the layers

  // Picks rows ids[i] of a table with n_rows rows.
  Tensor Embed(TensorId ids, const std::string& name, int64_t n_rows);
  // Picks rows of x by index: x [k, tokens] -> [k, output rows].
  Tensor PickRows(Tensor x, TensorId indices);

  // Returns the weight. Returns TRINE_NONE and sets the status if the weight is missing or has
  // another shape; trailing dimensions of 1 are ignored.
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
  // Return views of x. Columns takes `count` values of each row from `first` on. HeadColumns takes
  // `heads` heads of `head_dim` values from `first` on, as [head_dim, heads, tokens].
  Tensor Columns(Tensor x, int64_t first, int64_t count);
  Tensor HeadColumns(Tensor x, int64_t first, int64_t head_dim, int64_t heads);
  // Multiplies x [k, used or 1, tokens] with the weights of each token's experts. Returns
  // [n_out, used, tokens]. `slots`: the weights are those of slots; 0: of all experts.
  Tensor ExpertLinear(Tensor x, TensorId ids, const std::string& name, int64_t n_out, Bias bias,
                      int64_t slots);
  // Runs the feed-forward networks of the experts `ids` on x [k, 1, tokens]. Returns
  // [n_embd, used, tokens]. `slots`: as in ExpertLinear.
  Tensor ExpertNetworks(Tensor x, TensorId ids, const ExpertRouting& routing, int64_t slots);
  // Does the same on two devices, of which home has `slots` experts.
  Tensor DividedNetworks(Tensor x, TensorId ids, const ExpertRouting& routing, int64_t slots);
  // Replaces the last weight that was added, whose last dimension counts experts, by one of the
  // layer's slots.
  TensorId InSlots(TensorId weight, int64_t slots);
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
  const ExpertDivision* division_ = nullptr;
  absl::Status status_;
};

}  // namespace trine
