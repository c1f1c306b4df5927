#include "dispatch/layer_stack.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "dispatch/timed_plan.h"

namespace trine {
namespace {

constexpr int64_t kHead = 64, kBlock = 64, kPositions = 512;

}  // namespace

LayerStack::LayerStack(uint32_t type, int64_t width, int layers, int64_t tokens)
    : type_(type), width_(width), tokens_(tokens) {
  m_ = graph_.AddParam(TRINE_PARAM_TOKENS, 1, tokens);
  graph_.AddParam(TRINE_PARAM_KV_POSITIONS, 1, kPositions);
  rope_ = Io(TRINE_DTYPE_F32, {kHead, m_});
  slots_ = Io(TRINE_DTYPE_I32, {m_});
  table_ = Io(TRINE_DTYPE_I32, {kPositions / kBlock, 1});
  offsets_ = Io(TRINE_DTYPE_I32, {2});
  lengths_ = Io(TRINE_DTYPE_I32, {1});
  TensorId x = Io(TRINE_DTYPE_F32, {width, m_});
  for (int i = 0; i < layers; ++i) x = Layer(x);
  const TensorId y = Io(TRINE_DTYPE_F32, {width, m_});
  graph_.AddOp(TRINE_OP_COPY, {x}, {y});
  graph_.Finish();
}

PassShape LayerStack::Pass() const {
  return {Params(), static_cast<double>(kPositions) - static_cast<double>(tokens_ - 1) / 2};
}

std::vector<int64_t> LayerStack::Params() const { return {tokens_, kPositions}; }

absl::StatusOr<double> LayerStack::Time(const std::shared_ptr<Device>& device, double seconds) {
  auto plan = TimedPlan::Create(device, std::move(graph_), weights_);
  if (!plan.ok()) return plan.status();
  std::vector<int32_t> blocks(kPositions / kBlock), slots(static_cast<size_t>(tokens_));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::iota(slots.begin(), slots.end(), static_cast<int32_t>(kPositions - tokens_));
  const int32_t offsets[] = {0, static_cast<int32_t>(tokens_)};
  const auto length = static_cast<int32_t>(kPositions);
  Segment& segment = (*plan)->segment();
  absl::Status s = segment.Write(table_, blocks.data(), blocks.size() * sizeof(int32_t));
  if (s.ok()) s = segment.Write(slots_, slots.data(), slots.size() * sizeof(int32_t));
  if (s.ok()) s = segment.Write(offsets_, offsets, sizeof(offsets));
  if (s.ok()) s = segment.Write(lengths_, &length, sizeof(length));
  if (!s.ok()) return s;
  return (*plan)->Time(Params(), seconds);
}

TensorId LayerStack::Product(TensorId x, int64_t from, int64_t to) {
  const TensorId w = graph_.AddTensor(TRINE_ROLE_CONSTANT, type_, {from, to});
  weights_.push_back(w);
  const TensorId y = graph_.AddTemp({to, m_});
  graph_.AddOp(TRINE_OP_MATMUL, {w, x, TRINE_NONE}, {y});
  return y;
}

TensorId LayerStack::Norm(TensorId x) {
  const TensorId w = graph_.AddTensor(TRINE_ROLE_CONSTANT, TRINE_DTYPE_F32, {width_});
  weights_.push_back(w);
  const TensorId y = graph_.AddTemp({width_, m_});
  graph_.AddOp(TRINE_OP_RMS_NORM, {x, w}, {y}, trine_norm_attr{0, 1e-5f});
  return y;
}

TensorId LayerStack::Rotated(TensorId x, int64_t heads) {
  const TensorId y = graph_.AddTemp({kHead, heads, m_});
  graph_.AddOp(TRINE_OP_ROPE, {graph_.AddReshape(x, {kHead, heads, m_}), rope_}, {y},
               trine_rope_attr{0, TRINE_ROPE_HALVES});
  return y;
}

TensorId LayerStack::Stored(TensorId x, int64_t heads) {
  const TensorId cache = graph_.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F16,
                                          {kHead, kBlock, heads, kPositions / kBlock});
  graph_.AddOp(TRINE_OP_KV_STORE, {x, slots_}, {cache});
  return cache;
}

TensorId LayerStack::Sum(TensorId a, TensorId b) {
  const TensorId y = graph_.AddTemp({width_, m_});
  graph_.AddOp(TRINE_OP_ADD, {a, b}, {y});
  return y;
}

TensorId LayerStack::Layer(TensorId x) {
  const int64_t heads = width_ / kHead, kv_heads = std::max<int64_t>(heads / 4, 1);
  const TensorId h = Norm(x);
  const TensorId q = Rotated(Product(h, width_, width_), heads);
  const TensorId k = Rotated(Product(h, width_, kv_heads * kHead), kv_heads);
  const TensorId v = graph_.AddReshape(Product(h, width_, kv_heads * kHead), {kHead, kv_heads, m_});
  trine_attention_attr attr{};
  attr.flags = TRINE_ATTENTION_CAUSAL;
  attr.scale = 0.125f;
  const TensorId seen = graph_.AddTemp({kHead, heads, m_});
  const TensorId k_cache = Stored(k, kv_heads), v_cache = Stored(v, kv_heads);
  graph_.AddOp(TRINE_OP_ATTENTION, {q, k_cache, v_cache, table_, offsets_, lengths_, TRINE_NONE},
               {seen}, attr);
  x = Sum(x, Product(graph_.AddReshape(seen, {width_, m_}), width_, width_));
  const TensorId n = Norm(x);
  const TensorId gate = Product(n, width_, 4 * width_), up = Product(n, width_, 4 * width_);
  const TensorId gated = graph_.AddTemp({4 * width_, m_});
  graph_.AddOp(TRINE_OP_GLU, {gate, up}, {gated}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0});
  return Sum(x, Product(gated, 4 * width_, width_));
}

}  // namespace trine
