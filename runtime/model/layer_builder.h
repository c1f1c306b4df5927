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

enum class Bias { kNone, kIfPresent, kRequired };

class LayerBuilder {
 public:
  LayerBuilder(const gguf::File& file, const ModelConfig& config, const SegmentLimits& limits,
               uint32_t rope_pairing, SegmentGraph* segment)
      : file_(file),
        config_(config),
        limits_(limits),
        rope_pairing_(rope_pairing),
        segment_(segment) {}

  const ModelConfig& config() const { return config_; }
  const absl::Status& status() const { return status_; }

  // Names below are those of GGUF without the "blk.N." in front and the ".weight" behind.
  void BeginLayer(int64_t layer) { layer_ = layer; }
  void EndLayers() { layer_ = kOutside; }

  // y = norm of each row of dims[0] values, times the weight.
  Tensor RmsNorm(Tensor x, const std::string& name);
  // W x (+ b): x [k, tokens] -> [n_out, tokens].
  Tensor Linear(Tensor x, const std::string& name, int64_t n_out, Bias bias = Bias::kNone);
  // [head_dim * heads, tokens] -> [head_dim, heads, tokens], the same memory.
  Tensor Heads(Tensor x, int64_t head_dim, int64_t heads);
  Tensor Rope(Tensor x);
  // Stores k and v, then attends: -> [head_dim_v * n_heads, tokens].
  Tensor Attention(Tensor q, Tensor k, Tensor v);
  Tensor SwiGlu(Tensor gate, Tensor up);
  Tensor Add(Tensor a, Tensor b);
  // Row ids[i] of a table with n_rows rows.
  Tensor Embed(TensorId ids, const std::string& name, int64_t n_rows);
  // Rows of x picked by index: x [k, tokens] -> [k, output rows].
  Tensor PickRows(Tensor x, TensorId indices);

  // A weight with this shape, or TRINE_NONE with the status set.
  TensorId Weight(const std::string& full_name, const Shape& shape, bool as_f32);
  bool Has(const std::string& full_name) const { return file_.FindTensor(full_name) != nullptr; }

 private:
  static constexpr int64_t kOutside = -1;

  OpGraph& graph() { return segment_->graph; }
  std::string FullName(const std::string& name, const char* suffix) const;
  TensorId Cache(uint32_t dtype, int64_t head_dim);
  Shape ShapeOf(Tensor x) const;
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const gguf::File& file_;
  const ModelConfig& config_;
  const SegmentLimits& limits_;
  uint32_t rope_pairing_;
  SegmentGraph* segment_;
  int64_t layer_ = kOutside;
  absl::Status status_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_LAYER_BUILDER_H_
