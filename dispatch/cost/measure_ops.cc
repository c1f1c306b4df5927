// Measures runs, small ops, attention and moves.
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <numeric>

#include "dispatch/cost/measuring.h"
#include "dispatch/cost/settled_curve.h"
#include "dispatch/exec/op_graph.h"

namespace trine {
namespace {

constexpr int kSmallOps = 32;  // number of small ops in one plan
constexpr int64_t kSmallOpTokens = 64;

// Adds an op that reads rows of kMeasuredWidth values and writes as many.
using AddSmallOp = std::function<void(OpGraph*, int64_t tokens, TensorId x, TensorId y)>;

// Times kSmallOps ops of one kind. Returns the cost per op and per value.
absl::StatusOr<OpCost> SmallOpCost(const Measuring& m, double run_ns, int inputs,
                                   const AddSmallOp& add_op) {
  OpGraph graph(m.options().numerics);
  const int64_t tokens = graph.AddParam(TRINE_PARAM_TOKENS, 1, kSmallOpTokens);
  const Shape rows = {kMeasuredWidth, tokens};
  TensorId x = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, rows);
  const TensorId last = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, rows);
  for (int i = 0; i < kSmallOps; ++i) {
    const TensorId y = i + 1 < kSmallOps ? graph.AddTemp(rows) : last;
    add_op(&graph, tokens, x, y);
    x = y;
  }
  graph.Finish();
  auto plan = TimedPlan::Create(m.device(), std::move(graph), {});
  if (!plan.ok()) return plan.status();
  const auto rounds = m.InRounds({[&] { return m.Round(plan->get(), {1}); },
                                  [&] { return m.Round(plan->get(), {kSmallOpTokens}); }});
  if (!rounds.ok()) return rounds.status();
  const auto values = static_cast<double>((inputs + 1) * kMeasuredWidth);
  const double value_ns = SummariseRounds(*rounds, [&](const std::vector<double>& ns) {
                            return (ns[1] - ns[0]) / kSmallOps / (values * (kSmallOpTokens - 1));
                          }).median;
  OpCost cost;
  cost.value_ns = AtLeast(value_ns, 1e-4);
  const double op_ns = SummariseRounds(*rounds, [&](const std::vector<double>& ns) {
                         return (ns[0] - run_ns) / kSmallOps - values * cost.value_ns;
                       }).median;
  cost.op_ns = AtLeast(op_ns, 1);
  return cost;
}

void AddSum(OpGraph* g, int64_t, TensorId x, TensorId y) { g->AddOp(TRINE_OP_ADD, {x, x}, {y}); }

void AddNorm(OpGraph* g, int64_t, TensorId x, TensorId y) {
  g->AddOp(TRINE_OP_RMS_NORM, {x, TRINE_NONE}, {y}, trine_norm_attr{0, 1e-5f});
}

// Adds rope. All ops of a graph share one table, which `table` keeps.
AddSmallOp AddRope(TensorId* table) {
  return [table](OpGraph* g, int64_t tokens, TensorId x, TensorId y) {
    if (*table == TRINE_NONE) *table = g->AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64, tokens});
    const Shape heads = {64, kMeasuredWidth / 64, tokens};
    g->AddOp(TRINE_OP_ROPE, {g->AddReshape(x, heads), *table}, {g->AddReshape(y, heads)},
             trine_rope_attr{0, TRINE_ROPE_HALVES});
  };
}

void AddGlu(OpGraph* g, int64_t, TensorId x, TensorId y) {
  g->AddOp(TRINE_OP_GLU, {x, x}, {y}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0});
}

constexpr int64_t kAttentionHead = 64, kAttentionHeads = 32, kAttentionKvHeads = 8;
constexpr int64_t kAttentionBlock = 64;
constexpr int64_t kFewPositions = 64, kManyPositions = 512;
// The values of keys and values that one token sees of kManyPositions, for one head of keys.
constexpr double kSeenValues = kManyPositions * 2 * kAttentionHead;

// Attention ops in one plan. All heads share eight heads of keys.
struct AttentionOps {
  int64_t tokens = 1;     // at the end of the sequence
  int64_t positions = 0;  // of the whole sequence
  int64_t heads = kAttentionHeads;
  int layers = 2;
  std::unique_ptr<TimedPlan> plan = nullptr;

  absl::Status Record(const Measuring& m) {
    OpGraph graph(m.options().numerics);
    const int64_t n = graph.AddParam(TRINE_PARAM_TOKENS, 1, tokens);
    const int64_t blocks = (positions + kAttentionBlock - 1) / kAttentionBlock;
    const Shape cache = {kAttentionHead, kAttentionBlock, kAttentionKvHeads, blocks};
    const Shape rows = {kAttentionHead, heads, n};
    const TensorId q = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, rows);
    const TensorId y = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, rows);
    const TensorId table = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {blocks, 1});
    const TensorId offsets = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {2});
    const TensorId lengths = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {1});
    graph.AddParam(TRINE_PARAM_KV_POSITIONS, 1, positions);
    trine_attention_attr attr{};
    attr.flags = TRINE_ATTENTION_CAUSAL;
    attr.scale = 0.125f;
    for (int i = 0; i < layers; ++i) {
      const TensorId k = graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F16, cache);
      const TensorId v = graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F16, cache);
      const TensorId out = i + 1 < layers ? graph.AddTemp(rows) : y;
      graph.AddOp(TRINE_OP_ATTENTION, {q, k, v, table, offsets, lengths, TRINE_NONE}, {out}, attr);
    }
    graph.Finish();
    auto made = TimedPlan::Create(m.device(), std::move(graph), {});
    if (!made.ok()) return made.status();
    plan = *std::move(made);
    return WriteInputs(table, blocks, offsets, lengths);
  }

  // Measures one round. Returns the time of one op.
  absl::StatusOr<double> Round(Measuring* m) {
    const auto ns = m->Round(plan.get(), {tokens, positions});
    if (!ns.ok()) return ns;
    return AtLeast(*ns - m->costs().run_ns, 1) / layers;
  }

  // Returns the values of keys and values that the tokens see, for each head, on average. The last
  // token sees all positions, the first all but those of the tokens after it.
  double Seen() const {
    return (static_cast<double>(positions) - static_cast<double>(tokens - 1) / 2) * 2 *
           kAttentionHead;
  }

 private:
  absl::Status WriteInputs(TensorId table, int64_t blocks, TensorId offsets, TensorId lengths) {
    std::vector<int32_t> order(static_cast<size_t>(blocks));
    std::iota(order.begin(), order.end(), 0);
    const int32_t q_offsets[] = {0, static_cast<int32_t>(tokens)};
    const auto length = static_cast<int32_t>(positions);
    Segment& segment = plan->segment();
    absl::Status s = segment.Write(table, order.data(), order.size() * sizeof(int32_t));
    if (s.ok()) s = segment.Write(offsets, q_offsets, sizeof(q_offsets));
    if (s.ok()) s = segment.Write(lengths, &length, sizeof(length));
    return s;
  }
};

// Attention of one token, from which the costs without the curve follow.
struct AttentionOfOne {
  AttentionOps few{1, kFewPositions};
  AttentionOps many{1, kManyPositions};
  AttentionOps few_heads{1, kManyPositions, kAttentionKvHeads};

  absl::Status Record(const Measuring& m, int layers) {
    for (AttentionOps* ops : {&few, &many, &few_heads}) {
      ops->layers = layers;
      if (absl::Status s = ops->Record(m); !s.ok()) return s;
    }
    return absl::OkStatus();
  }
};

// Returns the cost of a value for a head, from the times with many and with few heads.
double PerHead(double many, double few_heads) {
  return AtLeast(
      (many - few_heads) / (kSeenValues * static_cast<double>(kAttentionHeads - kAttentionKvHeads)),
      1e-6);
}

absl::Status MeasureAttentionOfOne(Measuring* m, AttentionOfOne* one) {
  const auto rounds =
      m->InRounds({[&] { return one->few.Round(m); }, [&] { return one->many.Round(m); },
                   [&] { return one->few_heads.Round(m); }});
  if (!rounds.ok()) return rounds.status();
  const double op_ns = SummariseRounds(*rounds, [](const std::vector<double>& ns) {
                         return ns[0] - (ns[1] - ns[0]) / (kManyPositions / kFewPositions - 1);
                       }).median;
  m->costs().attention_ns = AtLeast(op_ns, 1);
  const double kv_ns =
      SummariseRounds(*rounds, [&](const std::vector<double>& ns) {
        return (ns[1] - m->costs().attention_ns) / (kSeenValues * kAttentionKvHeads) -
               PerHead(ns[1], ns[2]) * kAttentionHeads / kAttentionKvHeads;
      }).median;
  m->costs().attention_kv_ns = std::max(0.0, kv_ns);
  return absl::OkStatus();
}

// Measures the cost of a value for a head, by the number of tokens.
absl::Status MeasureAttentionCurve(Measuring* m, AttentionOfOne* one) {
  std::array<AttentionOps, 2> more = {AttentionOps{32, kManyPositions},
                                      AttentionOps{256, kManyPositions}};
  const auto measure = [&](size_t i) -> absl::StatusOr<double> {
    if (i == 0) {
      const auto many = one->many.Round(m);
      if (!many.ok()) return many;
      const auto few_heads = one->few_heads.Round(m);
      if (!few_heads.ok()) return few_heads;
      return PerHead(*many, *few_heads);
    }
    AttentionOps& ops = more[i - 1];
    if (ops.plan == nullptr) {
      if (absl::Status s = ops.Record(*m); !s.ok()) return s;
    }
    const auto ns = ops.Round(m);
    if (!ns.ok()) return ns;
    const double seen = ops.Seen();
    const double rest =
        *ns - m->costs().attention_ns - m->costs().attention_kv_ns * seen * kAttentionKvHeads;
    return AtLeast(rest, 1) / (seen * kAttentionHeads);
  };
  CurveCare care{m->options().rounds, m->options().again};
  care.least = 1;
  care.enough = kTooLongNs / (kSeenValues * kAttentionHeads);
  const auto settled = SettleCurve({1, 32, 256}, measure, care);
  if (!settled.ok()) return settled.status();
  for (const std::string& doubt : settled->doubts) m->Note(absl::StrCat("attention, ", doubt));
  m->costs().attention = settled->curve;
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureRunWithCopy(Measuring* m) {
  OpGraph graph(m->options().numerics);
  const TensorId x = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {32});
  const TensorId y = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {32});
  graph.AddOp(TRINE_OP_COPY, {x}, {y});
  graph.Finish();
  auto plan = TimedPlan::Create(m->device(), std::move(graph), {});
  if (!plan.ok()) return plan.status();
  const auto rounds = m->InRounds({[&] { return m->Round(plan->get(), {}); }});
  if (!rounds.ok()) return rounds.status();
  m->costs().run_ns =
      SummariseRounds(*rounds, [](const std::vector<double>& ns) { return ns[0]; }).median;
  return absl::OkStatus();
}

absl::Status MeasureSmallOps(Measuring* m, bool run_has_copy) {
  DeviceCosts& costs = m->costs();
  const double run_ns = costs.run_ns;
  const auto measure = [&](const char* name, int inputs, const AddSmallOp& add, OpCost* out) {
    const auto cost = SmallOpCost(*m, run_ns, inputs, add);
    if (!cost.ok()) return m->Skip(name, cost.status());
    *out = *cost;
    return absl::OkStatus();
  };
  TensorId table = TRINE_NONE;
  absl::Status s = measure("plain ops", 2, AddSum, &costs.plain);
  if (s.ok()) s = measure("norm", 1, AddNorm, &costs.norm);
  if (s.ok()) s = measure("rope", 1, AddRope(&table), &costs.rope);
  if (s.ok()) s = measure("glu", 2, AddGlu, &costs.glu);
  if (run_has_copy) costs.run_ns = AtLeast(run_ns - costs.plain.op_ns, 1);
  return s;
}

absl::Status MeasureAttention(Measuring* m) {
  AttentionOps probe{1, kFewPositions};
  if (absl::Status s = probe.Record(*m); !s.ok()) return m->Skip("attention", s);
  const auto ns = probe.Round(m);
  if (!ns.ok()) return ns.status();
  // 24 layers have more KV cache than a processor's caches keep from one run to the next.
  AttentionOfOne one;
  absl::Status s = one.Record(*m, *ns * 8 > kTooLongNs / 10 ? 1 : 24);
  if (s.ok()) s = MeasureAttentionOfOne(m, &one);
  if (s.ok()) s = MeasureAttentionCurve(m, &one);
  if (s.ok()) return s;
  // The device refuses some of the shapes. Costs of the others alone would not fit together.
  m->costs().attention_ns = m->costs().attention_kv_ns = 0;
  m->costs().attention = CostCurve();
  return m->Skip("attention", s);
}

// Measures moves to and from IO memory, with which the host hands a stage's output to the next one.
absl::Status MeasureMoves(Measuring* m) {
  constexpr uint64_t kLittle = 4096, kMuch = uint64_t{4} << 20;
  auto buffer = Buffer::Allocate(m->device(), kMuch, TRINE_MEMORY_IO);
  if (!buffer.ok()) return m->Skip("moves", buffer.status());
  std::vector<std::byte> data(kMuch);
  using Move = std::function<absl::Status(uint64_t)>;
  const auto cost = [&](const char* name, const Move& move, MoveCost* out) {
    const auto time = [&](uint64_t bytes) -> absl::StatusOr<double> {
      if (absl::Status s = m->GoOn(); !s.ok()) return s;
      return TimeRound([&] { return move(bytes); }, SteadyNanoseconds, m->budget_ns());
    };
    const auto rounds = m->InRounds({[&] { return time(kLittle); }, [&] { return time(kMuch); }});
    if (!rounds.ok()) return m->Skip(name, rounds.status());
    const double byte_ns = SummariseRounds(*rounds, [&](const std::vector<double>& ns) {
                             return (ns[1] - ns[0]) / static_cast<double>(kMuch - kLittle);
                           }).median;
    out->byte_ns = AtLeast(byte_ns, 1e-6);
    const double little =
        SummariseRounds(*rounds, [](const std::vector<double>& ns) { return ns[0]; }).median;
    out->call_ns = AtLeast(little - static_cast<double>(kLittle) * out->byte_ns, 1);
    return absl::OkStatus();
  };
  absl::Status s = cost(
      "moves to it", [&](uint64_t n) { return buffer->Write(0, data.data(), n); }, &m->costs().in);
  if (!s.ok()) return s;
  return cost(
      "moves from it", [&](uint64_t n) { return buffer->Read(0, data.data(), n); },
      &m->costs().out);
}

}  // namespace trine
