// Measures products with weights, by type and by tokens.
#include <cstddef>
#include <functional>
#include <optional>

#include "dispatch/cost/measuring.h"
#include "dispatch/cost/settled_curve.h"
#include "dispatch/exec/op_graph.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

constexpr int64_t kWideWidth = 4096;  // of matrices on a device that kMeasuredWidth does not fill
constexpr double kFastNs = 5e5;       // a shorter product at the most tokens does not fill it
// Costs that are subtracted from all others are measured again while they are this uneven.
constexpr double kUneven = 0.5;

struct ProductShape {
  uint32_t type = 0;
  int64_t width = kMeasuredWidth;  // of the matrices, which are square
  int64_t count = 1;               // products in a run, each with its own matrix
  int64_t most_tokens = 1;
  TimedWeights how = TimedWeights::kPacked;

  double weights() const { return static_cast<double>(width * width); }  // of one matrix
  double bytes() const { return static_cast<double>(sdk::ValueBytes(type, width) * width); }
};

// A chain of products in one plan.
class ProductChain {
 public:
  static absl::StatusOr<ProductChain> Record(const Measuring& m, const ProductShape& shape) {
    OpGraph graph(m.options().numerics);
    std::vector<TensorId> weights;
    const int64_t tokens = graph.AddParam(TRINE_PARAM_TOKENS, 1, shape.most_tokens);
    const Shape rows = {shape.width, tokens};
    TensorId x = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, rows);
    for (int64_t i = 0; i < shape.count; ++i) {
      const TensorId w =
          graph.AddTensor(TRINE_ROLE_CONSTANT, shape.type, {shape.width, shape.width});
      const bool last = i + 1 == shape.count;
      const TensorId y =
          last ? graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, rows) : graph.AddTemp(rows);
      graph.AddOp(TRINE_OP_MATMUL, {w, x, TRINE_NONE}, {y});
      weights.push_back(w);
      x = y;
    }
    graph.Finish();
    auto plan = TimedPlan::Create(m.device(), std::move(graph), weights, shape.how);
    if (!plan.ok()) return plan.status();
    ProductChain chain;
    chain.shape_ = shape;
    chain.plan_ = *std::move(plan);
    return chain;
  }

  const ProductShape& shape() const { return shape_; }
  // Measures one round: the time of a run.
  absl::StatusOr<double> Whole(const Measuring& m, int64_t tokens) const {
    return m.Round(plan_.get(), {tokens});
  }
  // Measures one round: the time of one product, without its part of the run.
  absl::StatusOr<double> Each(Measuring* m, int64_t tokens) const {
    const auto ns = Whole(*m, tokens);
    if (!ns.ok()) return ns;
    return (*ns - m->costs().run_ns) / static_cast<double>(shape_.count);
  }

 private:
  ProductShape shape_;
  std::unique_ptr<TimedPlan> plan_;
};

// Measures a cost in rounds, again while it is uneven. Returns the evenest.
absl::StatusOr<double> EvenCost(const Measuring& m, const std::vector<MeasureOnce>& things,
                                const std::function<double(const std::vector<double>&)>& cost) {
  std::optional<RepeatedCost> best;
  for (int i = 0; i <= m.options().again && (!best || best->spread > kUneven); ++i) {
    const auto rounds = m.InRounds(things);
    if (!rounds.ok()) return rounds.status();
    const RepeatedCost measured = SummariseRounds(*rounds, cost);
    if (!best || measured.spread < best->spread) best = measured;
  }
  return best->median;
}

// Measures what a product costs apart from its weights.
absl::Status MeasureProductAlone(Measuring* m, uint32_t type, bool slow) {
  ProductShape shape{type, kMeasuredNarrow / 2, slow ? 2 : 16};
  const auto small = ProductChain::Record(*m, shape);
  if (!small.ok()) return small.status();
  const double small_weights = shape.weights();
  shape.width = kMeasuredNarrow;
  const auto large = ProductChain::Record(*m, shape);
  if (!large.ok()) return large.status();
  const auto cost = EvenCost(
      *m, {[&] { return small->Each(m, 1); }, [&] { return large->Each(m, 1); }},
      [&](const std::vector<double>& ns) {
        const double weight_ns = AtLeast((ns[1] - ns[0]) / (shape.weights() - small_weights), 1e-6);
        return AtLeast(ns[0] - weight_ns * small_weights, 1);
      });
  if (!cost.ok()) return cost.status();
  m->costs().matmul_ns = *cost;
  return absl::OkStatus();
}

// Measures the part of a product's cost that is left when all weights of a run fit into caches.
absl::Status MeasureReuse(Measuring* m, uint32_t type, double streamed_ns) {
  const auto stream = static_cast<double>(m->options().stream_bytes);
  std::vector<CostCurve::Point> points;
  for (double set = 2 << 20; set < stream / 2; set *= 4) {
    ProductShape shape{type, kMeasuredNarrow};
    shape.count = static_cast<int64_t>(set / shape.bytes());
    const auto chain = ProductChain::Record(*m, shape);
    if (!chain.ok()) return chain.status();
    const auto rounds = m->InRounds({[&] { return chain->Each(m, 1); }});
    if (!rounds.ok()) return rounds.status();
    const double part = SummariseRounds(*rounds, [&](const std::vector<double>& ns) {
                          return (ns[0] - m->costs().matmul_ns) / shape.weights() / streamed_ns;
                        }).median;
    points.push_back({set, std::clamp(part, 0.05, 1.0)});
  }
  points.push_back({stream, 1});
  m->costs().reuse = CostCurve(std::move(points));
  return absl::OkStatus();
}

// The chains that one curve is measured with, and which chain is for which number of tokens.
struct ProductChains {
  std::vector<ProductChain> chains;
  std::vector<double> tokens;
  std::vector<size_t> chain_of;  // by the index in `tokens`

  absl::Status Add(const Measuring& m, ProductShape shape, const std::vector<int64_t>& counts) {
    shape.most_tokens = counts.back();
    auto chain = ProductChain::Record(m, shape);
    if (!chain.ok()) return chain.status();
    chains.push_back(*std::move(chain));
    for (const int64_t count : counts) {
      tokens.push_back(static_cast<double>(count));
      chain_of.push_back(chains.size() - 1);
    }
    return absl::OkStatus();
  }
  // Measures one round: the cost of a weight.
  absl::StatusOr<double> Weight(Measuring* m, size_t i) const {
    const ProductChain& chain = chains[chain_of[i]];
    const auto ns = chain.Each(m, static_cast<int64_t>(tokens[i]));
    if (!ns.ok()) return ns;
    return AtLeast(*ns - m->costs().matmul_ns, 1) / chain.shape().weights();
  }
};

// Returns whether products of this shape are too small to fill the device.
absl::StatusOr<bool> IsFast(Measuring* m, ProductShape shape) {
  shape.most_tokens = 256;
  const auto chain = ProductChain::Record(*m, shape);
  if (!chain.ok()) return chain.status();
  for (const int64_t tokens : {16, 256}) {
    const auto ns = chain->Each(m, tokens);
    if (!ns.ok()) return ns.status();
    if (*ns - m->costs().matmul_ns >= kFastNs) return false;
  }
  return true;
}

// Records products of few tokens, which read weights from memory and not from a cache, and products
// of many tokens.
absl::StatusOr<ProductChains> RecordChains(Measuring* m, uint32_t type, bool slow) {
  ProductShape shape{type, slow ? kMeasuredNarrow : kMeasuredWidth};
  auto stream = static_cast<double>(m->options().stream_bytes);
  if (const uint64_t free = m->device()->info().memory_free; free != 0) {
    stream = std::min(stream, static_cast<double>(free) / 4);
  }
  if (!slow) shape.count = static_cast<int64_t>(std::clamp(stream / shape.bytes(), 1.0, 1024.0));
  ProductChains chains;
  if (absl::Status s = chains.Add(*m, shape, {1, 4}); !s.ok()) return s;
  std::vector<int64_t> many = {16, 64, 256};
  shape.count = slow ? 1 : 2;
  if (!slow) {
    const auto fast = IsFast(m, shape);
    if (!fast.ok()) return fast.status();
    if (*fast) {
      shape.width = kWideWidth;
      many.push_back(1024);
    }
  }
  if (absl::Status s = chains.Add(*m, shape, many); !s.ok()) return s;
  return chains;
}

// Returns whether products of kMeasuredWidth take too long. Returns UNIMPLEMENTED if the device
// refuses the type.
absl::StatusOr<bool> IsSlow(Measuring* m, uint32_t type) {
  const auto chain = ProductChain::Record(*m, {type, kMeasuredNarrow});
  if (!chain.ok()) return chain.status();
  const auto ns = chain->Each(m, 1);
  if (!ns.ok()) return ns.status();
  constexpr double kLarger = static_cast<double>(kMeasuredWidth * kMeasuredWidth) /
                             static_cast<double>(kMeasuredNarrow * kMeasuredNarrow);
  return *ns * kLarger > kTooLongNs;
}

double BytesOfWeight(uint32_t type) {
  return static_cast<double>(sdk::ValueBytes(type, kMeasuredWidth)) /
         static_cast<double>(kMeasuredWidth);
}

// Returns a measured type that is much faster than all others, if there is one.
std::optional<uint32_t> FastType(const DeviceCosts& costs) {
  const auto read = [](const auto& entry) {
    return ReadCost{entry.second.points().front().cost, BytesOfWeight(entry.first)};
  };
  for (const auto& type : costs.matmul) {
    std::vector<ReadCost> others;
    for (const auto& other : costs.matmul) {
      if (other.first != type.first) others.push_back(read(other));
    }
    if (IsTooFastForItsPeers(read(type), others)) return type.first;
  }
  return std::nullopt;
}

// Takes the most bytes that any type reads in a second.
void SetBandwidth(DeviceCosts* costs) {
  costs->bytes_per_second = 0;
  for (const auto& [type, curve] : costs->matmul) {
    costs->bytes_per_second =
        std::max(costs->bytes_per_second, BytesOfWeight(type) / curve.points().front().cost * 1e9);
  }
}

}  // namespace

absl::Status MeasureRunWithProducts(Measuring* m, const std::vector<uint32_t>& types) {
  constexpr int kMore = 9;
  std::string why;
  for (const uint32_t type : types) {
    ProductShape shape{type, kMeasuredNarrow / 2};
    const auto one = ProductChain::Record(*m, shape);
    if (absl::IsUnimplemented(one.status())) {
      if (why.empty()) why = std::string(one.status().message());
      continue;
    }
    if (!one.ok()) return one.status();
    shape.count = kMore;
    const auto more = ProductChain::Record(*m, shape);
    if (!more.ok()) return more.status();
    // What `more` takes longer is products alone. The rest of the time of `one` is the run's.
    const auto cost =
        EvenCost(*m, {[&] { return one->Whole(*m, 1); }, [&] { return more->Whole(*m, 1); }},
                 [](const std::vector<double>& ns) {
                   return AtLeast(ns[0] - (ns[1] - ns[0]) / (kMore - 1), 1);
                 });
    if (!cost.ok()) return cost.status();
    m->costs().run_ns = *cost;
    return absl::OkStatus();
  }
  return NoProducts(why);
}

absl::Status MeasureProducts(Measuring* m, uint32_t type) {
  const auto slow = IsSlow(m, type);
  if (!slow.ok()) return slow.status();
  const bool first = m->base_type.value_or(type) == type;
  m->base_type = m->base_type.value_or(type);
  if (first) {
    if (absl::Status s = MeasureProductAlone(m, type, *slow); !s.ok()) return s;
  }
  const auto chains = RecordChains(m, type, *slow);
  if (!chains.ok()) return chains.status();
  CurveCare care{m->options().rounds, m->options().again};
  // Beyond the last point the curve grows in proportion: a product that takes long is enough.
  care.enough = 10 * kTooLongNs / chains->chains.back().shape().weights();
  const auto settled = SettleCurve(
      chains->tokens, [&](size_t i) { return chains->Weight(m, i); }, care);
  if (!settled.ok()) return settled.status();
  for (const std::string& doubt : settled->doubts) {
    m->Note(absl::StrCat(sdk::DtypeName(type), ", ", doubt));
  }
  if (first && !*slow) {
    const double streamed_ns = settled->curve.points().front().cost;
    if (absl::Status s = MeasureReuse(m, type, streamed_ns); !s.ok()) return s;
  }
  m->costs().matmul[type] = settled->curve;
  m->trust().spread[type] = settled->spreads;
  SetBandwidth(&m->costs());
  return absl::OkStatus();
}

absl::Status DoubtFastTypes(Measuring* m) {
  for (int i = 0; i < m->options().again; ++i) {
    const std::optional<uint32_t> type = FastType(m->costs());
    if (!type) return absl::OkStatus();
    m->Note(absl::StrCat(sdk::DtypeName(*type),
                         ": more than 4 times as fast as every other type at the fewest tokens, so "
                         "it was measured again"));
    if (absl::Status s = MeasureProducts(m, *type); !s.ok()) return s;
  }
  while (const std::optional<uint32_t> type = FastType(m->costs())) {
    m->Note(absl::StrCat(sdk::DtypeName(*type),
                         ": it stayed so; nothing of it is kept, and its costs are guessed"));
    m->costs().matmul.erase(*type);
    m->trust().spread.erase(*type);
    if (m->base_type != *type || m->costs().matmul.empty()) continue;
    m->base_type.reset();
    m->costs().reuse = CostCurve();
    if (absl::Status s = MeasureProducts(m, m->costs().matmul.begin()->first); !s.ok()) return s;
  }
  SetBandwidth(&m->costs());
  return absl::OkStatus();
}

absl::Status MeasureUnpacked(Measuring* m, uint32_t type) {
  const CostCurve& curve = m->costs().matmul.at(type);
  ProductShape shape{type, kMeasuredNarrow, 16, 256};
  const auto packed = ProductChain::Record(*m, shape);
  if (!packed.ok()) return packed.status();
  shape.how = TimedWeights::kPlain;
  const auto plain = ProductChain::Record(*m, shape);
  if (absl::IsUnimplemented(plain.status())) return absl::OkStatus();
  if (!plain.ok()) return plain.status();
  std::vector<CostCurve::Point> points;
  for (const int64_t tokens : {1, 256}) {
    const auto at = static_cast<double>(tokens);
    if (curve.At(at) * shape.weights() > 10 * kTooLongNs) break;
    const auto rounds = m->InRounds(
        {[&] { return packed->Each(m, tokens); }, [&] { return plain->Each(m, tokens); }});
    if (!rounds.ok()) return rounds.status();
    const double factor = SummariseRounds(*rounds, [](const std::vector<double>& ns) {
                            return AtLeast(ns[1], 1) / AtLeast(ns[0], 1);
                          }).median;
    points.push_back({at, std::clamp(factor, 0.2, 50.0)});
  }
  m->costs().unpacked = CostCurve(std::move(points));
  return absl::OkStatus();
}

absl::Status MeasureStreamed(Measuring* m, uint32_t type) {
  const trine_device_info& info = m->device()->info();
  const bool unified = (info.flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0;
  if (unified || info.import_alignment == 0) return absl::OkStatus();
  const ProductShape shape{type, kMeasuredWidth, 8, 1, TimedWeights::kStreamed};
  const auto chain = ProductChain::Record(*m, shape);
  // The device can't stream: it can't import this memory, or has no room for what it fetches.
  if (absl::IsUnimplemented(chain.status()) || absl::IsResourceExhausted(chain.status())) {
    return absl::OkStatus();
  }
  if (!chain.ok()) return chain.status();
  const auto rounds = m->InRounds({[&] { return chain->Each(m, 1); }});
  if (!rounds.ok()) return rounds.status();
  const double each =
      SummariseRounds(*rounds, [](const std::vector<double>& ns) { return ns[0]; }).median;
  m->costs().stream_byte_ns = AtLeast(each, 1) / shape.bytes();
  return absl::OkStatus();
}

}  // namespace trine
