#include "runtime/model/arch/layer_builder.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/invalid.h"

namespace trine {
namespace {

constexpr int64_t kTokens = -1 - static_cast<int64_t>(kParamTokens);
constexpr int64_t kFloatBytes = sizeof(float);
constexpr int64_t kOutputRows = -1 - static_cast<int64_t>(kParamOutputRows);

std::string ShapeText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

Shape WithoutOnes(Shape shape) {
  while (!shape.empty() && shape.back() == 1) shape.pop_back();
  return shape;
}

trine_glu_attr GluAttr(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return {0, TRINE_ACT_SILU, 0, 0};
    case Activation::kGelu:
      return {0, TRINE_ACT_GELU, 0, 0};
    case Activation::kClampedSwiglu:
      break;
  }
  return {0, TRINE_ACT_SWIGLU_CLAMPED, 1.702f, 7.0f};  // the constants are in gpt-oss's code
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
    Fail(Invalid("the file lacks the tensor ", full_name, ", which ", config_.architecture,
                 " needs"));
    return TRINE_NONE;
  }
  const Shape found(info->dims, info->dims + info->rank);
  if (WithoutOnes(found) != WithoutOnes(shape)) {
    Fail(Invalid("tensor ", full_name, " has the shape ", ShapeText(found),
                 "; the model's numbers say ", ShapeText(shape)));
    return TRINE_NONE;
  }
  if (info->type == quant::Type::kI32 || (as_f32 && !IsPlainFloat(info->type))) {
    Fail(
        Invalid("tensor ", full_name, " is of type ", quant::Traits(info->type).name,
                as_f32 ? "; norms and biases are f32, f16 or bf16" : ", which no weight can have"));
    return TRINE_NONE;
  }
  const auto dtype = as_f32 ? uint32_t{TRINE_DTYPE_F32} : static_cast<uint32_t>(info->type);
  const TensorId id = graph().AddTensor(TRINE_ROLE_CONSTANT, dtype, shape);
  segment_->weights.push_back({id, info, as_f32, std::nullopt});
  return id;
}

Tensor LayerBuilder::Norm(Tensor x, const std::string& name) {
  if (!status_.ok()) return {};
  const Shape shape = ShapeOf(x);
  const TensorId weight = Weight(FullName(name, ".weight"), {shape[0]}, true);
  const TensorId bias =
      norm_ == NormKind::kLayer ? BiasOf(name, {shape[0]}, Bias::kIfPresent) : TRINE_NONE;
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp(shape);
  const trine_norm_attr attr{0, config_.norm_eps};
  if (norm_ == NormKind::kRms) {
    graph().AddOp(TRINE_OP_RMS_NORM, {x.id, weight}, {y}, attr);
  } else {
    graph().AddOp(TRINE_OP_LAYER_NORM, {x.id, weight, bias}, {y}, attr);
  }
  return {y};
}

TensorId LayerBuilder::BiasOf(const std::string& name, const Shape& shape, Bias bias) {
  const std::string full_name = FullName(name, ".bias");
  const bool wanted = bias == Bias::kRequired || (bias == Bias::kIfPresent && Has(full_name));
  return wanted ? Weight(full_name, shape, true) : TRINE_NONE;
}

Tensor LayerBuilder::Linear(Tensor x, const std::string& name, int64_t n_out, Bias bias) {
  if (!status_.ok()) return {};
  const Shape shape = ShapeOf(x);
  const TensorId weight = Weight(FullName(name, ".weight"), {shape[0], n_out}, false);
  const TensorId b = BiasOf(name, {n_out}, bias);
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp({n_out, shape[1]});
  graph().AddOp(TRINE_OP_MATMUL, {weight, x.id, b}, {y});
  return {y};
}

Tensor LayerBuilder::Heads(Tensor x, int64_t head_dim, int64_t heads) {
  if (!status_.ok()) return {};
  return {graph().AddReshape(x.id, {head_dim, heads, kTokens})};
}

Tensor LayerBuilder::Columns(Tensor x, int64_t first, int64_t count) {
  if (!status_.ok()) return {};
  Shape shape = ShapeOf(x);
  Shape strides = {0, shape[0] * kFloatBytes};
  if (shape.size() == 3) strides.push_back(strides[1] * shape[1]);
  shape[0] = count;
  return {graph().AddView(x.id, shape, strides, static_cast<uint64_t>(first * kFloatBytes))};
}

Tensor LayerBuilder::HeadColumns(Tensor x, int64_t first, int64_t head_dim, int64_t heads) {
  if (!status_.ok()) return {};
  const Shape strides = {0, head_dim * kFloatBytes, ShapeOf(x)[0] * kFloatBytes};
  return {graph().AddView(x.id, {head_dim, heads, kTokens}, strides,
                          static_cast<uint64_t>(first * kFloatBytes))};
}

Qkv LayerBuilder::Project(Tensor x, Bias bias) {
  const ModelConfig& c = config_;
  const int64_t n_q = c.n_heads * c.head_dim_k;
  const int64_t n_k = c.n_kv_heads * c.head_dim_k;
  const int64_t n_v = c.n_kv_heads * c.head_dim_v;
  if (HasWeight("attn_qkv")) {
    const Tensor all = Linear(x, "attn_qkv", n_q + n_k + n_v, bias);
    return {HeadColumns(all, 0, c.head_dim_k, c.n_heads),
            HeadColumns(all, n_q, c.head_dim_k, c.n_kv_heads),
            HeadColumns(all, n_q + n_k, c.head_dim_v, c.n_kv_heads)};
  }
  const Tensor q = Heads(Linear(x, "attn_q", n_q, bias), c.head_dim_k, c.n_heads);
  const Tensor k = Heads(Linear(x, "attn_k", n_k, bias), c.head_dim_k, c.n_kv_heads);
  const Tensor v = Heads(Linear(x, "attn_v", n_v, bias), c.head_dim_v, c.n_kv_heads);
  return {q, k, v};
}

Tensor LayerBuilder::RotateOne(Tensor x) {
  if (!status_.ok()) return {};
  const bool own_table = config_.IsWindowed(layer_) && config_.rope_windowed.has_value();
  const TensorId table = own_table ? segment_->io.rope_windowed : segment_->io.rope;
  // In place, since nothing else reads the values before rotation.
  const Tensor y = in_place_ ? x : Tensor{graph().AddTemp(ShapeOf(x))};
  graph().AddOp(TRINE_OP_ROPE, {x.id, table}, {y.id}, trine_rope_attr{0, rope_pairing_});
  return y;
}

Qkv LayerBuilder::Rotate(Qkv p) {
  if (!config_.IsRotated(layer_)) return p;
  const Tensor q = RotateOne(p.q);
  const Tensor k = RotateOne(p.k);
  return {q, k, p.v};
}

TensorId LayerBuilder::Cache(uint32_t dtype, int64_t head_dim) {
  const TensorId id = graph().AddTensor(
      TRINE_ROLE_STATE, dtype, {head_dim, kBlockPositions, config_.n_kv_heads, limits_.kv_blocks});
  segment_->caches.push_back({id, layer_, segment_->caches.size()});
  return id;
}

Tensor LayerBuilder::Attend(Qkv p, const std::string& sinks) {
  if (!status_.ok()) return {};
  const ModelConfig& c = config_;
  const SegmentIo& io = segment_->io;
  const TensorId sink_weight =
      sinks.empty() ? TRINE_NONE : Weight(FullName(sinks, ".weight"), {c.n_heads}, true);
  if (!status_.ok()) return {};
  const TensorId k_cache = Cache(limits_.kv_type_k, c.head_dim_k);
  const TensorId v_cache = Cache(limits_.kv_type_v, c.head_dim_v);
  graph().AddOp(TRINE_OP_KV_STORE, {p.k.id, io.kv_slots}, {k_cache});
  graph().AddOp(TRINE_OP_KV_STORE, {p.v.id, io.kv_slots}, {v_cache});
  trine_attention_attr attr{};
  attr.flags = TRINE_ATTENTION_CAUSAL;
  attr.scale = c.attention_scale;
  attr.softcap = c.attention_softcap;
  attr.window = c.IsWindowed(layer_) ? static_cast<uint32_t>(c.window) : 0;
  const TensorId y = graph().AddTemp({c.head_dim_v, c.n_heads, kTokens});
  graph().AddOp(
      TRINE_OP_ATTENTION,
      {p.q.id, k_cache, v_cache, io.block_table, io.q_offsets, io.kv_lengths, sink_weight}, {y},
      attr);
  return {graph().AddReshape(y, {c.head_dim_v * c.n_heads, kTokens})};
}

Tensor LayerBuilder::Glu(Activation activation, Tensor gate, Tensor up) {
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp(ShapeOf(gate));
  graph().AddOp(TRINE_OP_GLU, {gate.id, up.id}, {y}, GluAttr(activation));
  return {y};
}

Tensor LayerBuilder::GatedFfn(Tensor x, Activation activation, Bias bias,
                              const std::string& suffix) {
  const int64_t n = suffix.empty() ? config_.n_ff : config_.experts.n_ff_shared;
  const std::string gate_name = "ffn_gate" + suffix, up_name = "ffn_up" + suffix;
  Tensor gate, up;
  const gguf::TensorInfo* up_info = file_.FindTensor(FullName(up_name, ".weight"));
  const bool fused = !HasWeight(gate_name) && up_info != nullptr && up_info->dims[1] == 2 * n;
  if (!fused) {
    gate = Linear(x, gate_name, n, bias);
    up = Linear(x, up_name, n, bias);
  } else {
    const Tensor both = Linear(x, up_name, 2 * n, bias);
    gate = Columns(both, 0, n);
    up = Columns(both, n, n);
  }
  return Linear(Glu(activation, gate, up), "ffn_down" + suffix, config_.n_embd, bias);
}

Tensor LayerBuilder::Ffn(Tensor x, Activation activation, Bias bias) {
  const Tensor up = Linear(x, "ffn_up", config_.n_ff, bias);
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp(ShapeOf(up));
  graph().AddOp(TRINE_OP_ACTIVATION, {up.id}, {y},
                trine_activation_attr{0, GluAttr(activation).activation});
  return Linear({y}, "ffn_down", config_.n_embd, bias);
}

TensorId LayerBuilder::InSlots(TensorId weight, int64_t slots) {
  WeightUse use = segment_->weights.back();
  segment_->weights.pop_back();
  const trine_tensor& t = graph().tensor(weight);
  Shape shape(t.dims, t.dims + t.rank);
  shape.back() = slots;
  const gguf::TensorInfo* const all = use.info;
  use.info = division_->first_experts(*all, slots);
  use.tensor = graph().AddTensor(TRINE_ROLE_CONSTANT, t.dtype, shape);
  segment_->weights.push_back(use);
  segment_->divided.back().weights.push_back({all, use.info, use.as_f32});
  return use.tensor;
}

Tensor LayerBuilder::ExpertLinear(Tensor x, TensorId ids, const std::string& name, int64_t n_out,
                                  Bias bias, int64_t slots) {
  if (!status_.ok()) return {};
  const ExpertConfig& e = config_.experts;
  TensorId weight = Weight(FullName(name, ".weight"), {ShapeOf(x)[0], n_out, e.count}, false);
  if (status_.ok() && slots != 0) weight = InSlots(weight, slots);
  TensorId b = BiasOf(name, {n_out, e.count}, bias);
  if (status_.ok() && slots != 0 && b != TRINE_NONE) b = InSlots(b, slots);
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp({n_out, e.used, kTokens});
  graph().AddOp(TRINE_OP_MOE_MATMUL, {weight, x.id, ids, b}, {y});
  return {y};
}

Tensor LayerBuilder::ExpertNetworks(Tensor x, TensorId ids, const ExpertRouting& routing,
                                    int64_t slots) {
  const ExpertConfig& e = config_.experts;
  Tensor gate, up;
  if (HasWeight("ffn_gate_up_exps")) {
    const Tensor both = ExpertLinear(x, ids, "ffn_gate_up_exps", 2 * e.n_ff, routing.bias, slots);
    gate = Columns(both, 0, e.n_ff);
    up = Columns(both, e.n_ff, e.n_ff);
  } else {
    gate = ExpertLinear(x, ids, "ffn_gate_exps", e.n_ff, routing.bias, slots);
    up = ExpertLinear(x, ids, "ffn_up_exps", e.n_ff, routing.bias, slots);
  }
  return ExpertLinear(Glu(routing.activation, gate, up), ids, "ffn_down_exps", config_.n_embd,
                      routing.bias, slots);
}

Tensor LayerBuilder::DividedNetworks(Tensor x, TensorId ids, const ExpertRouting& routing,
                                     int64_t slots) {
  const ExpertConfig& e = config_.experts;
  DividedLayer layer{layer_, e.count, slots, division_->in_place, ids, TRINE_NONE, TRINE_NONE, {}};
  for (TensorId* list : {&layer.home_ids, &layer.rest_ids}) {
    *list = graph().AddTensor(TRINE_ROLE_TEMP, TRINE_DTYPE_I32, {e.used, kTokens});
  }
  graph().AddOp(kDivideIds, {ids}, {layer.home_ids, layer.rest_ids});
  segment_->divided.push_back(layer);
  const Tensor rest = ExpertNetworks(x, layer.rest_ids, routing, 0);
  const int64_t at_home = division_->in_place ? e.count : slots;
  const Tensor home = ExpertNetworks(x, layer.home_ids, routing, at_home);
  return Add(home, rest);
}

Tensor LayerBuilder::Experts(Tensor x, const ExpertRouting& routing) {
  const ExpertConfig& e = config_.experts;
  const Tensor logits = Linear(x, "ffn_gate_inp", e.count, routing.bias);
  if (!status_.ok()) return {};
  const TensorId ids = graph().AddTensor(TRINE_ROLE_TEMP, TRINE_DTYPE_I32, {e.used, kTokens});
  const TensorId weights = graph().AddTemp({e.used, kTokens});
  const uint32_t flags = routing.normalize ? uint32_t{TRINE_MOE_NORMALIZE} : 0;
  graph().AddOp(TRINE_OP_MOE_ROUTE, {logits.id, TRINE_NONE}, {ids, weights},
                trine_moe_route_attr{0, routing.scoring, flags, e.weight_scale});

  const Tensor each = {graph().AddReshape(x.id, {ShapeOf(x)[0], 1, kTokens})};
  const int64_t slots = division_ == nullptr ? 0 : division_->SlotsOf(layer_);
  segment_->routed.push_back({layer_, e.count, e.used, ids});
  // The host sees the ids of a divided layer anyway.
  if (limits_.count_experts && slots == 0) graph().Expose(ids);
  const Tensor down = slots == 0 ? ExpertNetworks(each, ids, routing, 0)
                                 : DividedNetworks(each, ids, routing, slots);
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp({config_.n_embd, kTokens});
  graph().AddOp(TRINE_OP_MOE_COMBINE, {down.id, weights}, {y});
  return {y};
}

// The ABI has the sigmoid only in routers, so this routes to one expert, which is always chosen.
Tensor LayerBuilder::SigmoidGate(Tensor x, const std::string& name) {
  const Tensor logits = Linear(x, name, 1);
  if (!status_.ok()) return {};
  const TensorId ids = graph().AddTensor(TRINE_ROLE_TEMP, TRINE_DTYPE_I32, {1, kTokens});
  const TensorId y = graph().AddTemp({1, kTokens});
  graph().AddOp(TRINE_OP_MOE_ROUTE, {logits.id, TRINE_NONE}, {ids, y},
                trine_moe_route_attr{0, TRINE_MOE_SIGMOID, 0, 1});
  return {y};
}

Tensor LayerBuilder::Add(Tensor a, Tensor b) {
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp(ShapeOf(a));
  graph().AddOp(TRINE_OP_ADD, {a.id, b.id}, {y});
  return {y};
}

Tensor LayerBuilder::Mul(Tensor a, Tensor b) {
  if (!status_.ok()) return {};
  const TensorId y = graph().AddTemp(ShapeOf(a));
  graph().AddOp(TRINE_OP_MUL, {a.id, b.id}, {y});
  return {y};
}

Tensor LayerBuilder::Scale(Tensor x, float scale) {
  if (!status_.ok() || scale == 1) return x;
  const TensorId y = graph().AddTemp(ShapeOf(x));
  graph().AddOp(TRINE_OP_SCALE, {x.id}, {y}, trine_scale_attr{0, scale});
  return {y};
}

Tensor LayerBuilder::Softcap(Tensor x, float cap) {
  if (!status_.ok() || cap == 0) return x;
  const TensorId y = graph().AddTemp(ShapeOf(x));
  graph().AddOp(TRINE_OP_SOFTCAP, {x.id}, {y}, trine_scale_attr{0, cap});
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
