#include "backends/cpu/op_run.h"

#include <algorithm>
#include <chrono>

#include "backends/common/op_attributes.h"
#include "backends/cpu/attention_run.h"

namespace trine::cpu {
namespace {

using cpu_kernels::KernelTable;
using reference::Range;
using reference::Rows;
using reference::View;

Range RowsOf(const View& dst, Share share) { return share.Of(Rows(dst)); }

void RunCopy(const OpCall& c, Share share) {
  c.kernels->copy(*c.in[0], *c.out[0], RowsOf(*c.out[0], share));
}

// Runs a kernel of two inputs and one output.
template <auto kKernel>
void RunPair(const OpCall& c, Share share) {
  (c.kernels->*kKernel)(*c.in[0], *c.in[1], *c.out[0], RowsOf(*c.out[0], share));
}

// Runs a kernel whose attribute is one number.
template <auto kKernel>
void RunScaled(const OpCall& c, Share share) {
  const float scale = c.op->Attr<trine_scale_attr>().scale;
  (c.kernels->*kKernel)(*c.in[0], scale, *c.out[0], RowsOf(*c.out[0], share));
}

void RunRmsNorm(const OpCall& c, Share share) {
  const float eps = c.op->Attr<trine_norm_attr>().eps;
  c.kernels->rms_norm(*c.in[0], c.in[1], eps, *c.out[0], RowsOf(*c.out[0], share));
}

void RunLayerNorm(const OpCall& c, Share share) {
  const float eps = c.op->Attr<trine_norm_attr>().eps;
  c.kernels->layer_norm(*c.in[0], c.in[1], c.in[2], eps, *c.out[0], RowsOf(*c.out[0], share));
}

// Has a trial choose the way of each product of a worker, and tells it how long the product took.
class TriedWays {
 public:
  // `features`: how many the worker computes of each product.
  TriedWays(const OpCall& c, int64_t features) : c_(c), features_(features) {}

  // Begins a product with so many columns, at least 2. Call End when it has ended.
  cpu_kernels::Way Begin(int64_t columns) {
    columns_ = columns;
    trial_ = &c_.ways->For(columns);
    turn_ = *c_.is_warm ? trial_->Next() : WayTrial::Turn{trial_->chosen()};
    if (turn_.timed()) begin_ = std::chrono::steady_clock::now();
    return turn_.way;
  }
  void End() {
    if (!turn_.timed()) return;
    const std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - begin_;
    // Measures the time per computed value, because parts and passes differ in size.
    constexpr int64_t kFraction = 1 << 20;
    trial_->Tell(turn_, static_cast<uint64_t>(passed.count() * kFraction / (features_ * columns_)));
  }

 private:
  const OpCall& c_;
  const int64_t features_;
  int64_t columns_ = 0;
  WayTrial* trial_ = nullptr;
  WayTrial::Turn turn_;
  std::chrono::steady_clock::time_point begin_;
};

void RunMatmul(const OpCall& c, Share share) {
  const Range features = share.Of(c.out[0]->dims[0], kFeatureMultiple);
  if (features.begin >= features.end) return;
  const auto run = [&](cpu_kernels::Way way) {
    c.kernels->matmul(*c.in[0], *c.in[1], c.chunks, c.in[2], *c.out[0], features, {c.caches, way});
  };
  const int64_t columns = c.in[1]->dims[1];
  if (c.ways == nullptr || !c.kernels->matmul_has_ways(*c.in[0], columns)) {
    return run(cpu_kernels::Way::kUsual);
  }
  TriedWays ways(c, features.end - features.begin);
  run(ways.Begin(columns));
  ways.End();
}

void RunRope(const OpCall& c, Share share) {
  c.kernels->rope(*c.in[0], *c.in[1], backends::RopeModeOf(*c.op), *c.out[0],
                  RowsOf(*c.out[0], share));
}

void RunKvStore(const OpCall& c, Share share) {
  c.kernels->kv_store(*c.in[0], *c.in[1], *c.out[0], RowsOf(*c.in[0], share));
}

void RunGlu(const OpCall& c, Share share) {
  c.kernels->glu(*c.in[0], *c.in[1], backends::GluParamsOf(*c.op), *c.out[0],
                 RowsOf(*c.out[0], share));
}

void RunActivation(const OpCall& c, Share share) {
  c.kernels->activation(*c.in[0], backends::ActivationOf(*c.op), *c.out[0],
                        RowsOf(*c.out[0], share));
}

void RunMoeRoute(const OpCall& c, Share share) {
  c.kernels->moe_route(*c.in[0], c.in[1], backends::RouteParamsOf(*c.op), *c.out[0], *c.out[1],
                       share.Of(c.out[0]->dims[1]));
}

void RunMoeMatmul(const OpCall& c, Share share) {
  const Range features = share.Of(c.out[0]->dims[0], kFeatureMultiple);
  if (features.begin >= features.end) return;
  TriedWays ways(c, features.end - features.begin);
  const cpu_kernels::ExpertWays each = {
      &ways,
      [](void* self, int64_t columns) { return static_cast<TriedWays*>(self)->Begin(columns); },
      [](void* self) { static_cast<TriedWays*>(self)->End(); }};
  cpu_kernels::Tuning tuning = {c.caches};
  if (c.ways != nullptr) tuning.experts = &each;
  c.kernels->moe_matmul(*c.in[0], *c.in[1], c.chunks, *c.in[2], c.in[3], *c.out[0], features,
                        tuning);
}

void RunTopK(const OpCall& c, Share share) {
  c.kernels->top_k(*c.in[0], *c.out[0], *c.out[1], RowsOf(*c.in[0], share));
}

constexpr int64_t kValueBytes = 4;

View Narrow(const View& view, int dim, Range range) {
  View narrow = view;
  narrow.data += range.begin * (dim == 0 ? kValueBytes : view.strides[dim]);
  narrow.dims[dim] = range.end - range.begin;
  return narrow;
}

// Runs the op on a share's features, in every row.
void RunFeatures(const OpCall& c, Share share) {
  const Range range = share.Of(c.out[0]->dims[0], kFeatureMultiple);
  if (range.begin >= range.end) return;
  OpCall part = c;
  const View a = Narrow(*c.in[0], 0, range), y = Narrow(*c.out[0], 0, range);
  View b;
  part.in[0] = &a;
  part.out[0] = &y;
  if (c.in[1] != nullptr && c.op->kind != TRINE_OP_MOE_COMBINE) {
    b = Narrow(*c.in[1], 0, range);
    part.in[1] = &b;
  }
  FindOpFunction(c.op->kind)(part, Share{});
}

// Runs the op on a share's heads, for every token. Inputs after the first have no heads.
void RunHeads(const OpCall& c, Share share) {
  const Range range = share.Of(c.in[0]->dims[1]);
  if (range.begin >= range.end) return;
  OpCall part = c;
  const int dst_heads = c.op->kind == TRINE_OP_KV_STORE ? 2 : 1;  // a cache's dim 1 is positions
  const View x = Narrow(*c.in[0], 1, range), y = Narrow(*c.out[0], dst_heads, range);
  part.in[0] = &x;
  part.out[0] = &y;
  FindOpFunction(c.op->kind)(part, Share{});
}

}  // namespace

Range Share::Of(int64_t units, int64_t multiple) const {
  const int64_t pieces = (units + multiple - 1) / multiple;
  return {std::min(units, pieces * worker / workers * multiple),
          std::min(units, pieces * (int64_t{worker} + count) / workers * multiple)};
}

std::string WhyNotSupported(const sdk::Graph& graph, size_t index) {
  const sdk::Op& op = graph.ops[index];
  switch (op.kind) {
    case TRINE_OP_ROPE: {
      const uint32_t mode = op.Attr<trine_rope_attr>().mode;
      return mode == TRINE_ROPE_INTERLEAVED || mode == TRINE_ROPE_HALVES ? "" : "unknown rope mode";
    }
    case TRINE_OP_GLU: {
      const uint32_t a = op.Attr<trine_glu_attr>().activation;
      return a == TRINE_ACT_SILU || a == TRINE_ACT_GELU || a == TRINE_ACT_SWIGLU_CLAMPED
                 ? ""
                 : "unknown glu activation";
    }
    case TRINE_OP_ACTIVATION: {
      const uint32_t a = op.Attr<trine_activation_attr>().activation;
      return a >= TRINE_ACT_SILU && a <= TRINE_ACT_TANH ? "" : "unknown activation";
    }
    case TRINE_OP_MOE_ROUTE: {
      const uint32_t s = op.Attr<trine_moe_route_attr>().scoring;
      return s >= TRINE_MOE_SOFTMAX && s <= TRINE_MOE_SOFTMAX_SELECTED ? "" : "unknown moe scoring";
    }
    default:
      return "";
  }
}

OpFunction FindOpFunction(uint32_t kind) {
  struct Row {
    uint32_t kind;
    OpFunction function;
  };
  static constexpr Row kRows[] = {
      {TRINE_OP_COPY, RunCopy},
      {TRINE_OP_GATHER_ROWS, RunPair<&KernelTable::gather_rows>},
      {TRINE_OP_RMS_NORM, RunRmsNorm},
      {TRINE_OP_LAYER_NORM, RunLayerNorm},
      {TRINE_OP_MATMUL, RunMatmul},
      {TRINE_OP_ROPE, RunRope},
      {TRINE_OP_KV_STORE, RunKvStore},
      {TRINE_OP_ATTENTION, RunAttention},
      {TRINE_OP_GLU, RunGlu},
      {TRINE_OP_ACTIVATION, RunActivation},
      {TRINE_OP_ADD, RunPair<&KernelTable::add>},
      {TRINE_OP_MUL, RunPair<&KernelTable::mul>},
      {TRINE_OP_SCALE, RunScaled<&KernelTable::scale>},
      {TRINE_OP_SOFTCAP, RunScaled<&KernelTable::softcap>},
      {TRINE_OP_MOE_ROUTE, RunMoeRoute},
      {TRINE_OP_MOE_MATMUL, RunMoeMatmul},
      {TRINE_OP_MOE_COMBINE, RunPair<&KernelTable::moe_combine>},
      {TRINE_OP_TOP_K, RunTopK},
  };
  for (const Row& row : kRows) {
    if (row.kind == kind) return row.function;
  }
  return nullptr;
}

void QuantizeShare(const OpCall& call, Share share) {
  const View& x = *call.in[1];
  const int64_t chunks = Rows(x) * cpu_kernels::ActivationChunks(x.dims[0]);
  const auto reader = call.op->kind == TRINE_OP_MATMUL ? cpu_kernels::ActivationReader::kMatmul
                                                       : cpu_kernels::ActivationReader::kMoeMatmul;
  call.kernels->quantize_activations(x, reader, call.chunks, share.Of(chunks));
}

OpFunction FindColumnFunction(uint32_t kind, bool by_heads) {
  if (by_heads) return RunHeads;
  return backends::IsProduct(kind) ? FindOpFunction(kind) : RunFeatures;
}

}  // namespace trine::cpu
