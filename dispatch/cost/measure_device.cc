#include "dispatch/cost/measure_device.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "dispatch/cost/cost_model.h"
#include "dispatch/cost/timed_plan.h"
#include "dispatch/exec/op_graph.h"
#include "kernels/quant/block_types.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

constexpr int64_t kWidth = 2048;      // of matrices and activations
constexpr int64_t kSlowWidth = 512;   // of matrices on a device for which kWidth takes too long
constexpr double kSlowNs = 20e6;      // a longer product is too long
constexpr int kFewTokens[] = {1, 4};  // weights are read from memory, not from a cache
constexpr int kManyTokens[] = {16, 64, 256};
constexpr int64_t kWideWidth = 4096;  // of matrices on a device that kWidth does not fill
constexpr double kFastNs = 5e5;       // a shorter product at the most tokens does not fill it
constexpr int kChain = 32;            // number of small ops in one plan

// Keeps a cost above 0 if its time is too short for the clock.
double AtLeast(double ns, double least) { return std::isfinite(ns) ? std::max(ns, least) : least; }

// A chain of products, each with its own matrix.
struct Products {
  explicit Products(uint32_t numerics) : graph(numerics) {}
  OpGraph graph;
  std::vector<TensorId> weights;
};

Products MakeProducts(uint32_t numerics, uint32_t type, int64_t width, int64_t count,
                      int64_t most_tokens) {
  Products p(numerics);
  const int64_t tokens = p.graph.AddParam(TRINE_PARAM_TOKENS, 1, most_tokens);
  TensorId x = p.graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {width, tokens});
  for (int64_t i = 0; i < count; ++i) {
    const TensorId w = p.graph.AddTensor(TRINE_ROLE_CONSTANT, type, {width, width});
    const bool last = i + 1 == count;
    const TensorId y = last ? p.graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {width, tokens})
                            : p.graph.AddTemp({width, tokens});
    p.graph.AddOp(TRINE_OP_MATMUL, {w, x, TRINE_NONE}, {y});
    p.weights.push_back(w);
    x = y;
  }
  p.graph.Finish();
  return p;
}

class Measurer {
 public:
  Measurer(std::shared_ptr<Device> device, const MeasureOptions& options)
      : device_(std::move(device)), options_(options) {}

  absl::StatusOr<DeviceCosts> Measure() {
    std::vector<uint32_t> types = options_.types;
    for (const quant::Type type : quant::kAllTypes) {
      const bool weights = type != quant::Type::kI32 && type != quant::Type::kQ8_KV;
      if (options_.types.empty() && weights) types.push_back(static_cast<uint32_t>(type));
    }
    // The first type also serves to measure costs that do not depend on the type; Q8_0 is usual.
    const auto usual = std::find(types.begin(), types.end(), uint32_t{TRINE_DTYPE_Q8_0});
    if (usual != types.end()) std::rotate(types.begin(), usual, usual + 1);
    steps_ = static_cast<double>(types.size()) + 4;
    absl::Status s = Small();
    if (s.ok()) s = Attention();
    if (s.ok()) s = Moves();
    for (const uint32_t type : types) {
      if (s.ok()) s = Matmul(type);
    }
    if (!s.ok()) return s;
    if (costs_.matmul.empty()) {
      return absl::UnimplementedError("it multiplies with no type of weights exactly");
    }
    if (s = Unpacked(types.front()); !s.ok()) return s;
    if (s = Streamed(types.front()); !s.ok()) return s;
    if (s = Layers(types.front()); !s.ok()) return s;
    return std::move(costs_);
  }

 private:
  absl::Status Progress() {
    done_ += 1;
    if (!options_.progress || options_.progress(done_ / steps_)) return absl::OkStatus();
    return absl::CancelledError("calibration was cancelled");
  }

  absl::StatusOr<double> TimeProducts(uint32_t type, int64_t width, int64_t count, int64_t tokens,
                                      TimedWeights how = TimedWeights::kPacked) {
    Products products = MakeProducts(options_.numerics, type, width, count, tokens);
    auto plan = TimedPlan::Create(device_, std::move(products.graph), products.weights, how);
    if (!plan.ok()) return plan.status();
    return (*plan)->Time({tokens}, options_.seconds);
  }

  // Times kChain ops of one kind on rows of kWidth values. Returns the cost per op and per value.
  template <class AddOp>
  absl::StatusOr<OpCost> TimeSmall(int inputs, AddOp add_op) {
    constexpr int64_t kTokens = 64;
    OpGraph graph(options_.numerics);
    const int64_t tokens = graph.AddParam(TRINE_PARAM_TOKENS, 1, kTokens);
    const TensorId first = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {kWidth, tokens});
    const TensorId last = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {kWidth, tokens});
    TensorId x = first;
    for (int i = 0; i < kChain; ++i) {
      const TensorId y = i + 1 < kChain ? graph.AddTemp({kWidth, tokens}) : last;
      add_op(&graph, tokens, x, y);
      x = y;
    }
    graph.Finish();
    auto plan = TimedPlan::Create(device_, std::move(graph), {});
    if (!plan.ok()) return plan.status();
    const auto one = (*plan)->Time({1}, options_.seconds);
    if (!one.ok()) return one.status();
    const auto many = (*plan)->Time({kTokens}, options_.seconds);
    if (!many.ok()) return many.status();
    OpCost cost;
    const double values = static_cast<double>((inputs + 1) * kWidth);
    cost.value_ns = AtLeast((*many - *one) / kChain / (values * (kTokens - 1)), 1e-4);
    cost.op_ns = AtLeast((*one - costs_.run_ns) / kChain - values * cost.value_ns, 1);
    return cost;
  }

  // Measures a run that does almost nothing.
  absl::Status RunAlone() {
    OpGraph graph(options_.numerics);
    const TensorId x = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {32});
    const TensorId y = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {32});
    graph.AddOp(TRINE_OP_COPY, {x}, {y});
    graph.Finish();
    auto plan = TimedPlan::Create(device_, std::move(graph), {});
    if (!plan.ok()) return plan.status();
    const auto ns = (*plan)->Time({}, options_.seconds);
    if (!ns.ok()) return ns.status();
    costs_.run_ns = *ns;
    return absl::OkStatus();
  }

  absl::Status Small() {
    if (absl::Status s = RunAlone(); !s.ok()) return s;
    auto plain = TimeSmall(2, [](OpGraph* g, int64_t, TensorId x, TensorId y) {
      g->AddOp(TRINE_OP_ADD, {x, x}, {y});
    });
    if (!plain.ok()) return plain.status();
    auto norm = TimeSmall(1, [](OpGraph* g, int64_t, TensorId x, TensorId y) {
      g->AddOp(TRINE_OP_RMS_NORM, {x, TRINE_NONE}, {y}, trine_norm_attr{0, 1e-5f});
    });
    if (!norm.ok()) return norm.status();
    TensorId table = TRINE_NONE;
    auto rope = TimeSmall(1, [&](OpGraph* g, int64_t tokens, TensorId x, TensorId y) {
      if (table == TRINE_NONE) table = g->AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64, tokens});
      const Shape heads = {64, kWidth / 64, tokens};
      g->AddOp(TRINE_OP_ROPE, {g->AddReshape(x, heads), table}, {g->AddReshape(y, heads)},
               trine_rope_attr{0, TRINE_ROPE_HALVES});
    });
    if (!rope.ok()) return rope.status();
    auto glu = TimeSmall(2, [](OpGraph* g, int64_t, TensorId x, TensorId y) {
      g->AddOp(TRINE_OP_GLU, {x, x}, {y}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0});
    });
    if (!glu.ok()) return glu.status();
    costs_.plain = *plain;
    costs_.norm = *norm;
    costs_.rope = *rope;
    costs_.glu = *glu;
    // run_ns was measured with one copy, which counts as an op.
    costs_.run_ns = AtLeast(costs_.run_ns - costs_.plain.op_ns, 1);
    return Progress();
  }

  struct AttentionShape {
    int64_t tokens = 1;     // at the end of the sequence
    int64_t positions = 0;  // of the whole sequence
    int64_t heads = kHeads;
    int layers = 2;
  };

  // Times one attention op in nanoseconds. All heads share eight heads of keys.
  absl::StatusOr<double> TimeAttention(const AttentionShape& shape) {
    constexpr int64_t kBlock = 64;
    OpGraph graph(options_.numerics);
    const int64_t m = graph.AddParam(TRINE_PARAM_TOKENS, 1, shape.tokens);
    const int64_t blocks = (shape.positions + kBlock - 1) / kBlock;
    const Shape cache = {kHead, kBlock, kKvHeads, blocks};
    const Shape rows = {kHead, shape.heads, m};
    const TensorId q = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, rows);
    const TensorId y = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, rows);
    const TensorId table = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {blocks, 1});
    const TensorId offsets = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {2});
    const TensorId lengths = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {1});
    graph.AddParam(TRINE_PARAM_KV_POSITIONS, 1, shape.positions);
    trine_attention_attr attr{};
    attr.flags = TRINE_ATTENTION_CAUSAL;
    attr.scale = 0.125f;
    for (int i = 0; i < shape.layers; ++i) {
      const TensorId k = graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F16, cache);
      const TensorId v = graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F16, cache);
      const TensorId out = i + 1 < shape.layers ? graph.AddTemp(rows) : y;
      graph.AddOp(TRINE_OP_ATTENTION, {q, k, v, table, offsets, lengths, TRINE_NONE}, {out}, attr);
    }
    graph.Finish();
    auto plan = TimedPlan::Create(device_, std::move(graph), {});
    if (!plan.ok()) return plan.status();
    std::vector<int32_t> order(static_cast<size_t>(blocks));
    std::iota(order.begin(), order.end(), 0);
    const int32_t q_offsets[] = {0, static_cast<int32_t>(shape.tokens)};
    const auto length = static_cast<int32_t>(shape.positions);
    Segment& segment = (*plan)->segment();
    absl::Status s = segment.Write(table, order.data(), order.size() * sizeof(int32_t));
    if (s.ok()) s = segment.Write(offsets, q_offsets, sizeof(q_offsets));
    if (s.ok()) s = segment.Write(lengths, &length, sizeof(length));
    if (!s.ok()) return s;
    const auto ns = (*plan)->Time({shape.tokens, shape.positions}, options_.seconds);
    if (!ns.ok()) return ns;
    return AtLeast(*ns - costs_.run_ns, 1) / shape.layers;
  }

  absl::Status Attention() {
    constexpr int64_t kFew = 64, kMany = 512;
    auto few = TimeAttention({1, kFew});
    if (absl::IsUnimplemented(few.status())) return Progress();
    if (!few.ok()) return few.status();
    // 24 layers have more KV cache than a processor's caches keep from one run to the next.
    const int layers = *few * 8 > kSlowNs / 10 ? 1 : 24;
    few = TimeAttention({1, kFew, kHeads, layers});
    if (!few.ok()) return few.status();
    const auto one = TimeAttention({1, kMany, kHeads, layers});
    if (!one.ok()) return one.status();
    const auto fewer_heads = TimeAttention({1, kMany, kKvHeads, layers});
    if (!fewer_heads.ok()) return fewer_heads.status();
    costs_.attention_ns = AtLeast(*few - (*one - *few) / (kMany / kFew - 1), 1);
    const double values = kMany * 2 * kHead;
    const double per_head = AtLeast((*one - *fewer_heads) / (values * (kHeads - kKvHeads)), 1e-6);
    costs_.attention_kv_ns = std::max(
        0.0, (*one - costs_.attention_ns) / (values * kKvHeads) - per_head * kHeads / kKvHeads);
    std::vector<CostCurve::Point> points = {{1, per_head}};
    for (const int64_t tokens : {32, 256}) {
      if (points.back().cost * values * kHeads > kSlowNs) break;
      const auto ns = TimeAttention({tokens, kMany});
      if (!ns.ok()) return ns.status();
      // The last token sees all positions, the first all but those of the tokens after it.
      const double seen = (kMany - static_cast<double>(tokens - 1) / 2) * 2 * kHead;
      const double rest = *ns - costs_.attention_ns - costs_.attention_kv_ns * seen * kKvHeads;
      points.push_back({static_cast<double>(tokens), AtLeast(rest, 1) / (seen * kHeads)});
    }
    costs_.attention = CostCurve(std::move(points));
    return Progress();
  }

  // Measures moves to and from IO memory, with which the host hands a stage's output to the next
  // one.
  absl::Status Moves() {
    constexpr uint64_t kLittle = 4096, kMuch = uint64_t{4} << 20;
    auto buffer = Buffer::Allocate(device_, kMuch, TRINE_MEMORY_IO);
    if (!buffer.ok()) return buffer.status();
    std::vector<std::byte> data(kMuch);
    const auto time = [&](auto move, uint64_t bytes) -> absl::StatusOr<double> {
      using Clock = std::chrono::steady_clock;
      std::vector<double> times;
      for (int i = 0; i < 9; ++i) {
        const Clock::time_point begin = Clock::now();
        if (absl::Status s = move(bytes); !s.ok()) return s;
        times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
      }
      std::nth_element(times.begin(), times.begin() + 4, times.end());
      return times[4];
    };
    const auto cost = [&](auto move, MoveCost* out) {
      const auto little = time(move, kLittle);
      if (!little.ok()) return little.status();
      const auto much = time(move, kMuch);
      if (!much.ok()) return much.status();
      out->byte_ns = AtLeast((*much - *little) / static_cast<double>(kMuch - kLittle), 1e-6);
      out->call_ns = AtLeast(*little - kLittle * out->byte_ns, 1);
      return absl::OkStatus();
    };
    absl::Status s = cost([&](uint64_t n) { return buffer->Write(0, data.data(), n); }, &costs_.in);
    if (s.ok()) s = cost([&](uint64_t n) { return buffer->Read(0, data.data(), n); }, &costs_.out);
    if (!s.ok()) return s;
    return Progress();
  }

  absl::Status Matmul(uint32_t type) {
    const auto probe = TimeProducts(type, kSlowWidth, 1, 1);
    if (absl::IsUnimplemented(probe.status())) return Progress();
    if (!probe.ok()) return probe.status();
    constexpr double kLarger =
        static_cast<double>(kWidth * kWidth) / static_cast<double>(kSlowWidth * kSlowWidth);
    const bool slow = (*probe - costs_.run_ns) * kLarger > kSlowNs;
    const int64_t width = slow ? kSlowWidth : kWidth;
    const auto bytes = static_cast<double>(sdk::ValueBytes(type, width) * width);
    const double weights = static_cast<double>(width * width);
    double stream = static_cast<double>(options_.stream_bytes);
    if (const uint64_t free = device_->info().memory_free; free != 0) {
      stream = std::min(stream, static_cast<double>(free) / 4);
    }
    const auto many = static_cast<int64_t>(std::clamp(stream / bytes, 1.0, 256.0));
    if (costs_.matmul.empty()) {
      if (absl::Status s = Overhead(type, slow); !s.ok()) return s;
    }
    std::vector<CostCurve::Point> points;
    const auto add = [&](int64_t tokens, int64_t count) {
      const auto ns = TimeProducts(type, width, count, tokens);
      if (!ns.ok()) return ns.status();
      const double each = (*ns - costs_.run_ns) / static_cast<double>(count) - costs_.matmul_ns;
      points.push_back({static_cast<double>(tokens), AtLeast(each, 1) / weights});
      return absl::OkStatus();
    };
    absl::Status s;
    for (const int tokens : kFewTokens) {
      if (s.ok()) s = add(tokens, slow ? 1 : many);
    }
    for (const int tokens : kManyTokens) {
      // Stop when it takes long enough: beyond the last point the curve grows in proportion.
      const bool long_enough = points.size() > 2 && points.back().cost * weights > 10 * kSlowNs;
      if (s.ok() && !long_enough) s = add(tokens, slow ? 1 : 2);
    }
    if (!s.ok()) return s;
    if (points.back().cost * weights < kFastNs) {
      points.resize(std::size(kFewTokens));
      for (const int64_t tokens : {16, 64, 256, 1024}) {
        const auto ns = TimeProducts(type, kWideWidth, 2, tokens);
        if (!ns.ok()) return ns.status();
        const double each = (*ns - costs_.run_ns) / 2 - costs_.matmul_ns;
        points.push_back(
            {static_cast<double>(tokens), AtLeast(each, 1) / (kWideWidth * kWideWidth)});
      }
    }
    const double per_second = bytes / weights / points.front().cost * 1e9;
    costs_.bytes_per_second = std::max(costs_.bytes_per_second, per_second);
    if (costs_.matmul.empty() && !slow) {
      if (s = Reuse(type, points.front().cost); !s.ok()) return s;
    }
    costs_.matmul[type] = CostCurve(std::move(points));
    return Progress();
  }

  // Measures what a product costs apart from its weights.
  absl::Status Overhead(uint32_t type, bool slow) {
    const int64_t small = kSlowWidth / 2, large = kSlowWidth;
    const int64_t count = slow ? 2 : 16;
    const auto a = TimeProducts(type, small, count, 1);
    if (!a.ok()) return a.status();
    const auto b = TimeProducts(type, large, count, 1);
    if (!b.ok()) return b.status();
    const double each_a = (*a - costs_.run_ns) / static_cast<double>(count);
    const double each_b = (*b - costs_.run_ns) / static_cast<double>(count);
    const double weights = static_cast<double>(large * large - small * small);
    const double weight_ns = AtLeast((each_b - each_a) / weights, 1e-6);
    costs_.matmul_ns = AtLeast(each_a - weight_ns * static_cast<double>(small * small), 1);
    return absl::OkStatus();
  }

  // Measures the part of a product's cost that is left when all weights of a run fit into caches.
  absl::Status Reuse(uint32_t type, double streamed_ns) {
    const auto bytes = static_cast<double>(sdk::ValueBytes(type, kSlowWidth) * kSlowWidth);
    const double weights = static_cast<double>(kSlowWidth * kSlowWidth);
    std::vector<CostCurve::Point> points;
    for (double set = 2 << 20; set < static_cast<double>(options_.stream_bytes) / 2; set *= 4) {
      const auto count = static_cast<int64_t>(set / bytes);
      const auto ns = TimeProducts(type, kSlowWidth, count, 1);
      if (!ns.ok()) return ns.status();
      const double each = (*ns - costs_.run_ns) / static_cast<double>(count) - costs_.matmul_ns;
      points.push_back({set, std::clamp(each / weights / streamed_ns, 0.05, 1.0)});
    }
    points.push_back({static_cast<double>(options_.stream_bytes), 1});
    costs_.reuse = CostCurve(std::move(points));
    return absl::OkStatus();
  }

  // Compares products with weights in the layout of the file and in the device's layout.
  absl::Status Unpacked(uint32_t type) {
    const auto curve = costs_.matmul.find(type);
    if (curve == costs_.matmul.end()) return absl::OkStatus();
    const double weights = static_cast<double>(kSlowWidth * kSlowWidth);
    std::vector<CostCurve::Point> points;
    for (const int64_t tokens : {1, 256}) {
      if (curve->second.At(static_cast<double>(tokens)) * weights > 10 * kSlowNs) break;
      const auto packed = TimeProducts(type, kSlowWidth, 16, tokens);
      if (!packed.ok()) return packed.status();
      const auto plain = TimeProducts(type, kSlowWidth, 16, tokens, TimedWeights::kPlain);
      if (absl::IsUnimplemented(plain.status())) return absl::OkStatus();
      if (!plain.ok()) return plain.status();
      const double factor =
          AtLeast(*plain - costs_.run_ns, 1) / AtLeast(*packed - costs_.run_ns, 1);
      points.push_back({static_cast<double>(tokens), std::clamp(factor, 0.2, 50.0)});
    }
    costs_.unpacked = CostCurve(std::move(points));
    return absl::OkStatus();
  }

  // Measures products with weights in the host's memory, for devices that have their own memory.
  absl::Status Streamed(uint32_t type) {
    const trine_device_info& info = device_->info();
    const bool unified = (info.flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0;
    if (unified || info.import_alignment == 0) return absl::OkStatus();
    constexpr int64_t kCount = 8;
    const auto ns = TimeProducts(type, kWidth, kCount, 1, TimedWeights::kStreamed);
    // The device can't stream: it can't import this memory, or has no room for what it fetches.
    if (absl::IsUnimplemented(ns.status()) || absl::IsResourceExhausted(ns.status())) {
      return absl::OkStatus();
    }
    if (!ns.ok()) return ns.status();
    const auto bytes = static_cast<double>(sdk::ValueBytes(type, kWidth) * kWidth * kCount);
    costs_.stream_byte_ns = AtLeast(*ns - costs_.run_ns, 1) / bytes;
    return absl::OkStatus();
  }

  // Compares the time of layers, as many models have them, with the sum of their ops' times.
  absl::Status Layers(uint32_t type) {
    const auto curve = costs_.matmul.find(type);
    if (curve == costs_.matmul.end() || costs_.attention.empty()) return Progress();
    const double weights = static_cast<double>(kWidth * kWidth);
    const bool slow = curve->second.At(1) * weights > kSlowNs;
    std::vector<CostCurve::Point> points;
    // A layer has fourteen and a half square matrices. Take more layers than caches hold.
    const double layer_bytes = 14.5 * static_cast<double>(sdk::ValueBytes(type, kWidth) * kWidth);
    const int layers = static_cast<int>(
        std::clamp(static_cast<double>(options_.stream_bytes) / layer_bytes, 2.0, 16.0));
    for (const int64_t tokens : {1, 256}) {
      if (tokens > 1 && curve->second.At(256) * weights > 10 * kSlowNs) break;
      LayerStack stack(type, slow ? kSlowWidth : kWidth,
                       slow         ? 1
                       : tokens > 1 ? 2
                                    : layers,
                       tokens);
      const PassShape pass = stack.Pass();
      const double predicted =
          PredictGraph(costs_, stack.graph(), pass, static_cast<double>(tokens)).ns;
      const auto measured = stack.Time(device_, options_.seconds);
      if (absl::IsUnimplemented(measured.status())) return Progress();
      if (!measured.ok()) return measured.status();
      const double factor = (*measured - costs_.run_ns) / predicted;
      points.push_back({static_cast<double>(tokens), std::clamp(factor, 0.2, 5.0)});
    }
    costs_.correction = CostCurve(std::move(points));
    return Progress();
  }

  static constexpr int64_t kHead = 64, kHeads = 32, kKvHeads = 8;

  const std::shared_ptr<Device> device_;
  const MeasureOptions& options_;
  DeviceCosts costs_;
  double steps_ = 1, done_ = 0;
};

}  // namespace

absl::StatusOr<DeviceCosts> MeasureDevice(std::shared_ptr<Device> device,
                                          const MeasureOptions& options) {
  return Measurer(std::move(device), options).Measure();
}

}  // namespace trine
