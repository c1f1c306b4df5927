#include "dispatch/cost/timed_plan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "dispatch/cost/rounds.h"

namespace trine {
namespace {

// Makes weights in which any two bytes that are a scale read as an f16 between 0.06 and 0.12, and
// all other values are small.
std::vector<std::byte> OrdinaryBytes(uint64_t bytes) {
  std::vector<std::byte> data(bytes);
  uint32_t state = 1;
  for (std::byte& b : data) {
    state = state * 1664525 + 1013904223;
    b = static_cast<std::byte>(0x2c + (state >> 30));
  }
  return data;
}

// Returns the device's first layout that all readers of the weight accept. Leaves it plain.
std::optional<PackedLayout> ChooseLayout(const Device& device, TensorId weight, OpGraph* graph) {
  const auto layouts = device.ListLayouts(graph->View(), weight);
  if (!layouts.ok()) return std::nullopt;
  for (const PackedLayout& layout : *layouts) {
    graph->SetLayout(weight, layout.id(), layout.packed_bytes());
    const bool taken = RunsReaders(device, *graph, weight);
    graph->SetLayout(weight, TRINE_LAYOUT_PLAIN, graph->Bytes(weight));
    if (taken) return layout;
  }
  return std::nullopt;
}

// The bytes of weights in the layout that the device wants. Weights of one type and shape share
// them.
class WeightImages {
 public:
  explicit WeightImages(const Device& device) : device_(device) {}

  absl::StatusOr<const std::vector<std::byte>*> Of(const trine_tensor& tensor, uint64_t bytes,
                                                   const std::optional<PackedLayout>& layout) {
    const std::pair key(tensor.dtype, Shape(tensor.dims, tensor.dims + TRINE_MAX_RANK));
    const auto found = images_.find(key);
    if (found != images_.end()) return &found->second;
    std::vector<std::byte> image = OrdinaryBytes(bytes);
    if (layout) {
      std::vector<std::byte> packed(layout->packed_bytes());
      const absl::Status s =
          device_.Pack(*layout, 0, layout->groups(), image.data(), packed.data());
      if (!s.ok()) return s;
      image = std::move(packed);
    }
    return &images_.emplace(key, std::move(image)).first->second;
  }

 private:
  const Device& device_;
  std::map<std::pair<uint32_t, Shape>, std::vector<std::byte>> images_;
};

constexpr int64_t kHead = 64, kBlock = 64, kPositions = 512;

}  // namespace

absl::StatusOr<std::unique_ptr<TimedPlan>> TimedPlan::Create(std::shared_ptr<Device> device,
                                                             OpGraph graph,
                                                             const std::vector<TensorId>& weights,
                                                             TimedWeights how) {
  std::unique_ptr<TimedPlan> plan(new TimedPlan());
  std::vector<SlotMemory> memory;
  const auto add = [&](SlotId slot, uint64_t bytes, uint32_t kind,
                       const std::vector<std::byte>& image) {
    const bool streamed = how == TimedWeights::kStreamed && kind == TRINE_MEMORY_WEIGHTS;
    auto buffer = streamed ? plan->Import(device, image) : Buffer::Allocate(device, bytes, kind);
    if (!buffer.ok()) return buffer.status();
    const absl::Status s =
        streamed ? absl::OkStatus() : buffer->Write(0, image.data(), image.size());
    if (!s.ok()) return s;
    memory.push_back({slot, buffer->Span(0, bytes)});
    plan->memory_.push_back(*std::move(buffer));
    return absl::OkStatus();
  };
  WeightImages images(*device);
  std::map<std::pair<uint32_t, Shape>, std::optional<PackedLayout>> layouts;
  for (const TensorId weight : weights) {
    const trine_tensor& t = graph.tensor(weight);
    const auto [layout, is_new] =
        layouts.try_emplace({t.dtype, Shape(t.dims, t.dims + TRINE_MAX_RANK)});
    if (is_new && how == TimedWeights::kPacked) {
      layout->second = ChooseLayout(*device, weight, &graph);
    }
    const auto image = images.Of(t, graph.Bytes(weight), layout->second);
    if (!image.ok()) return image.status();
    const absl::Status s =
        add(graph.SlotOf(weight), (*image)->size(), TRINE_MEMORY_WEIGHTS, **image);
    if (!s.ok()) return s;
    if (layout->second) {
      graph.SetLayout(weight, layout->second->id(), layout->second->packed_bytes());
    }
  }
  for (SlotId slot = 0; slot < graph.slots().size(); ++slot) {
    if (graph.slots()[slot].role != TRINE_ROLE_STATE) continue;
    const uint64_t bytes = graph.slots()[slot].bytes;
    const absl::Status s = add(slot, bytes, TRINE_MEMORY_STATE, std::vector<std::byte>(bytes));
    if (!s.ok()) return s;
  }
  auto segment = Segment::Create(std::move(device), std::move(graph), memory);
  if (!segment.ok()) return segment.status();
  plan->segment_ = *std::move(segment);
  return plan;
}

// Imports a copy of `image` as a mapped file's pages are imported.
absl::StatusOr<Buffer> TimedPlan::Import(const std::shared_ptr<Device>& device,
                                         const std::vector<std::byte>& image) {
  const uint64_t grain = std::max<uint64_t>(device->info().import_alignment, 4096);
  trine_import_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.memory = TRINE_MEMORY_WEIGHTS;
  desc.flags = TRINE_IMPORT_READ_ONLY;
  desc.bytes = (image.size() + grain - 1) / grain * grain;
  HostMemory memory(std::aligned_alloc(grain, desc.bytes));
  if (memory == nullptr) return absl::ResourceExhaustedError("there is no memory for weights");
  std::memcpy(memory.get(), image.data(), image.size());
  desc.host_ptr = memory.get();
  host_.push_back(std::move(memory));
  return Buffer::Import(device, desc);
}

absl::StatusOr<double> TimedPlan::Round(const std::vector<int64_t>& params, double budget_ns) {
  return TimeRound([&] { return segment_->Run(params); }, SteadyNanoseconds, budget_ns);
}

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

absl::Status LayerStack::Record(const std::shared_ptr<Device>& device) {
  auto plan = TimedPlan::Create(device, std::move(graph_), weights_);
  if (!plan.ok()) return plan.status();
  plan_ = *std::move(plan);
  std::vector<int32_t> blocks(kPositions / kBlock), slots(static_cast<size_t>(tokens_));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::iota(slots.begin(), slots.end(), static_cast<int32_t>(kPositions - tokens_));
  const int32_t offsets[] = {0, static_cast<int32_t>(tokens_)};
  const auto length = static_cast<int32_t>(kPositions);
  Segment& segment = plan_->segment();
  absl::Status s = segment.Write(table_, blocks.data(), blocks.size() * sizeof(int32_t));
  if (s.ok()) s = segment.Write(slots_, slots.data(), slots.size() * sizeof(int32_t));
  if (s.ok()) s = segment.Write(offsets_, offsets, sizeof(offsets));
  if (s.ok()) s = segment.Write(lengths_, &length, sizeof(length));
  return s;
}

absl::StatusOr<double> LayerStack::Round(double budget_ns) {
  return plan_->Round(Params(), budget_ns);
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
