#include "runtime/model/layer_builder.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace trine {
namespace {

constexpr int64_t kTokens = -1 - static_cast<int64_t>(kParamTokens);
constexpr int64_t kOutputRows = -1 - static_cast<int64_t>(kParamOutputRows);

std::string ShapeText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

bool IsPlainFloat(quant::Type type) {
  return type == quant::Type::kF32 || type == quant::Type::kF16 || type == quant::Type::kBF16;
}

}  // namespace

std::string LayerBuilder::FullName(const std::string& name, const char* suffix) const {
  if (layer_ == kOutside) return absl::StrCat(name, suffix);
  return absl::StrCat("blk.", layer_, ".", name, suffix);
}

Shape LayerBuilder::ShapeOf(Tensor x) const {
  const trine_tensor& t = segment_->graph.tensor(x.id);
  return Shape(t.dims, t.dims + t.rank);
}

TensorId LayerBuilder::Weight(const std::string& full_name, const Shape& shape, bool as_f32) {
  const gguf::TensorInfo* info = file_.FindTensor(full_name);
  if (info == nullptr) {
    Fail(absl::InvalidArgumentError(absl::StrCat("the file lacks the tensor ", full_name,
                                                 ", which ", config_.architecture, " needs")));
    return TRINE_NONE;
  }
  Shape found(info->dims, info->dims + info->rank);
  while (found.size() > shape.size() && found.back() == 1) found.pop_back();
  if (found != shape) {
    Fail(absl::InvalidArgumentError(absl::StrCat("tensor ", full_name, " has the shape ",
                                                 ShapeText(found), "; the model's numbers say ",
                                                 ShapeText(shape))));
    return TRINE_NONE;
  }
  if (info->type == quant::Type::kI32 || (as_f32 && !IsPlainFloat(info->type))) {
    Fail(absl::InvalidArgumentError(absl::StrCat(
        "tensor ", full_name, " is of type ", quant::Traits(info->type).name,
        as_f32 ? "; norms and biases are f32, f16 or bf16" : ", which no weight can have")));
    return TRINE_NONE;
  }
  const auto dtype = as_f32 ? uint32_t{TRINE_DTYPE_F32} : static_cast<uint32_t>(info->type);
  const TensorId id = graph().AddTensor(TRINE_ROLE_CONSTANT, dtype, shape);
  segment_->weights.push_back({id, info, as_f32});
  return id;
}

Tensor LayerBuilder::RmsNorm(Tensor x, const std::string& name) {
  if (!status_.ok()) return {};
  const Shape shape = ShapeOf(x);
  const TensorId weight = Weight(FullName(name, ".weight"), {shape[0]}, true);
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp(shape);
  graph().AddOp(TRINE_OP_RMS_NORM, {x.id, weight}, {y}, trine_norm_attr{0, config_.norm_eps});
  return {y};
}

Tensor LayerBuilder::Linear(Tensor x, const std::string& name, int64_t n_out, Bias bias) {
  if (!status_.ok()) return {};
  const Shape shape = ShapeOf(x);
  const TensorId weight = Weight(FullName(name, ".weight"), {shape[0], n_out}, false);
  TensorId b = TRINE_NONE;
  const std::string bias_name = FullName(name, ".bias");
  if (bias == Bias::kRequired || (bias == Bias::kIfPresent && Has(bias_name))) {
    b = Weight(bias_name, {n_out}, true);
  }
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp({n_out, shape[1]});
  graph().AddOp(TRINE_OP_MATMUL, {weight, x.id, b}, {y});
  return {y};
}

Tensor LayerBuilder::Heads(Tensor x, int64_t head_dim, int64_t heads) {
  if (!status_.ok()) return {};
  return {graph().AddReshape(x.id, {head_dim, heads, kTokens})};
}

Tensor LayerBuilder::Rope(Tensor x) {
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp(ShapeOf(x));
  graph().AddOp(TRINE_OP_ROPE, {x.id, segment_->io.rope}, {y}, trine_rope_attr{0, rope_pairing_});
  return {y};
}

TensorId LayerBuilder::Cache(uint32_t dtype, int64_t head_dim) {
  const TensorId id = graph().AddTensor(
      TRINE_ROLE_STATE, dtype, {head_dim, kBlockPositions, config_.n_kv_heads, limits_.kv_blocks});
  segment_->caches.push_back({id, layer_});
  return id;
}

Tensor LayerBuilder::Attention(Tensor q, Tensor k, Tensor v) {
  if (!status_.ok()) return {};
  const SegmentIo& io = segment_->io;
  const TensorId k_cache = Cache(limits_.kv_type_k, config_.head_dim_k);
  const TensorId v_cache = Cache(limits_.kv_type_v, config_.head_dim_v);
  graph().AddOp(TRINE_OP_KV_STORE, {k.id, io.kv_slots}, {k_cache});
  graph().AddOp(TRINE_OP_KV_STORE, {v.id, io.kv_slots}, {v_cache});
  const TensorId y = graph().AddTemp({config_.head_dim_v, config_.n_heads, kTokens});
  graph().AddOp(TRINE_OP_ATTENTION,
                {q.id, k_cache, v_cache, io.block_table, io.q_offsets, io.kv_lengths}, {y},
                trine_attention_attr{0, TRINE_ATTENTION_CAUSAL, config_.attention_scale(), 0, 0});
  return {graph().AddReshape(y, {config_.head_dim_v * config_.n_heads, kTokens})};
}

Tensor LayerBuilder::SwiGlu(Tensor gate, Tensor up) {
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp(ShapeOf(gate));
  graph().AddOp(TRINE_OP_GLU, {gate.id, up.id}, {y}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0});
  return {y};
}

Tensor LayerBuilder::Add(Tensor a, Tensor b) {
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp(ShapeOf(a));
  graph().AddOp(TRINE_OP_ADD, {a.id, b.id}, {y});
  return {y};
}

Tensor LayerBuilder::Embed(TensorId ids, const std::string& name, int64_t n_rows) {
  if (!status_.ok()) return {};
  const TensorId table = Weight(FullName(name, ".weight"), {config_.n_embd, n_rows}, false);
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp({config_.n_embd, kTokens});
  graph().AddOp(TRINE_OP_GATHER_ROWS, {table, ids}, {y});
  return {y};
}

Tensor LayerBuilder::PickRows(Tensor x, TensorId indices) {
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp({ShapeOf(x)[0], kOutputRows});
  graph().AddOp(TRINE_OP_GATHER_ROWS, {x.id, indices}, {y});
  return {y};
}

}  // namespace trine
