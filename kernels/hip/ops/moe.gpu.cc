
#include "kernels/hip/ops/lane_results.h"
#include "kernels/hip/ops/ops.h"
#include "kernels/hip/ops/route.h"
#include "kernels/hip/ops/row_index.h"
#include "kernels/hip/ops/scalar_functions.h"
#include "kernels/hip/ops/walk.h"

namespace trine::hip {
namespace {

using reference::MoeScoring;

// A group of lanes has a token, and lane i the experts of class i of the sum over all experts.
constexpr int kThreads = 128;
constexpr uint32_t kGroups = kThreads / kLanes;

struct RouteArgs {
  Rows logits, ids, weights;
  int64_t tokens;
  Routing routing;
};

// Routes among up to 32 * kOfLane experts, of which up to 32 are used.
template <int kOfLane>
TRINE_KERNEL(kThreads)
RouteKernel(RouteArgs args) {
  BeginAfterEarlier();
  const uint32_t lane = ThreadX() % kLanes;
  const int64_t token = static_cast<int64_t>(BlockX()) * kGroups + ThreadX() / kLanes;
  if (token >= args.tokens) return;  // the whole group
  const RowIndex row = {token, 0, 0};
  const Selected mine = Route<kOfLane>(args.routing, RowAt<const float>(args.logits, row), lane);
  if (lane >= args.routing.used) return;
  RowAt<uint32_t>(args.ids, row)[lane] = mine.id;
  RowAt<float>(args.weights, row)[lane] = mine.weight;
}

// Routes among any number of experts, because it keeps nothing for each. The lane that had the last
// selected expert searches for its next best one, and weights are computed in place.
TRINE_KERNEL(kThreads) RouteAnyKernel(RouteArgs all) {
  BeginAfterEarlier();
  const Routing& args = all.routing;
  const uint32_t lane = ThreadX() % kLanes;
  const int64_t token = static_cast<int64_t>(BlockX()) * kGroups + ThreadX() / kLanes;
  if (token >= all.tokens) return;  // the whole group
  const RowIndex row = {token, 0, 0};
  const float* logits = RowAt<const float>(all.logits, row);
  uint32_t* ids = RowAt<uint32_t>(all.ids, row);
  float* weights = RowAt<float>(all.weights, row);
  float largest = 0.0f, inverse_sum = 0.0f;
  if (args.scoring == MoeScoring::kSoftmax) {
    uint32_t most = 0;
    for (uint32_t id = lane; id < args.experts; id += kLanes) {
      const uint32_t key = KeyOf(logits[id]);
      most = key > most ? key : most;
    }
    largest = ValueOf(LaneMax(most));
    float sum = 0.0f;
    for (uint32_t id = lane; id < args.experts; id += kLanes) sum = sum + Exp(logits[id] - largest);
    inverse_sum = Recip(JoinClasses(sum));
  }
  const auto score = [&](uint32_t id) {
    return RouteScore(logits[id], args.scoring, largest, inverse_sum);
  };
  Best own = {0, 0xffffffffu}, last = {0xffffffffu, lane};
  for (uint32_t slot = 0; slot < args.used; ++slot) {
    if (last.id % kLanes == lane) {
      own = {0, 0xffffffffu};
      for (uint32_t id = lane; id < args.experts; id += kLanes) {
        const float rank = args.bias != nullptr ? Canon(score(id) + args.bias[id]) : score(id);
        const uint32_t key = KeyOf(rank);
        const bool left = key < last.key || (key == last.key && id > last.id);
        if (left && key > own.key) own = {key, id};
      }
    }
    last = BestOfLanes(own);
    if (lane != slot % kLanes || last.id >= args.experts) continue;
    ids[slot] = last.id;
    weights[slot] = score(last.id);
  }
  // Every lane sums all weights, one by one in the order of selection, and divides its own.
  const auto divide_by_sum = [&] {
    SyncLanes();
    float sum = weights[0];
    for (uint32_t slot = 1; slot < args.used; ++slot) sum = sum + weights[slot];
    SyncLanes();
    const float inverse = Recip(sum);
    for (uint32_t slot = lane; slot < args.used; slot += kLanes) {
      weights[slot] = Canon(weights[slot] * inverse);
    }
  };
  if (args.scoring == MoeScoring::kSelectedSoftmax) {
    uint32_t most = 0;
    for (uint32_t slot = lane; slot < args.used; slot += kLanes) {
      const uint32_t key = KeyOf(weights[slot]);
      most = key > most ? key : most;
    }
    const float best = ValueOf(LaneMax(most));
    for (uint32_t slot = lane; slot < args.used; slot += kLanes) {
      weights[slot] = Exp(weights[slot] - best);
    }
    divide_by_sum();
  }
  if (args.normalize) divide_by_sum();
  if (args.scale == 1.0f) return;
  for (uint32_t slot = lane; slot < args.used; slot += kLanes) {
    weights[slot] = Canon(weights[slot] * args.scale);
  }
}

constexpr int kCombineThreads = 256;

struct CombineArgs {
  Walk walk;  // over y
  Rows x, weights, y;
  int64_t used;
};

template <int kUnit>
TRINE_KERNEL(kCombineThreads)
CombineKernel(CombineArgs args) {
  BeginAfterEarlier();
  const uint32_t along = BlockSizeX(), across = kCombineThreads / along;
  const int64_t token_step = static_cast<int64_t>(GridY()) * across;
  const int64_t unit_step = static_cast<int64_t>(GridX()) * along;
  for (int64_t token = static_cast<int64_t>(BlockY()) * across + ThreadY(); token < args.walk.rows;
       token += token_step) {
    const auto* weights = RowAt<const float>(args.weights, {token, 0, 0});
    for (int64_t i = static_cast<int64_t>(BlockX()) * along + ThreadX(); i < args.walk.units;
         i += unit_step) {
      float sum[kUnit] = {};  // no term is -0, so adding the first to +0 changes no bit
      for (int64_t slot = 0; slot < args.used; ++slot) {
        const float* x = RowAt<const float>(args.x, {slot, token, 0}) + i * kUnit;
        float v[kUnit];
        if constexpr (kUnit == 4) {
          const Float4 four = *reinterpret_cast<const Float4*>(x);
          v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
        } else {
          v[0] = *x;
        }
        for (int c = 0; c < kUnit; ++c) sum[c] = sum[c] + Canon(v[c] * weights[slot]);
      }
      float* y = RowAt<float>(args.y, {token, 0, 0}) + i * kUnit;
      if constexpr (kUnit == 4) {
        *reinterpret_cast<Float4*>(y) = {Canon(sum[0]), Canon(sum[1]), Canon(sum[2]),
                                         Canon(sum[3])};
      } else {
        *y = Canon(sum[0]);
      }
    }
  }
}

}  // namespace

Launch MoeRouteLaunch(const Tensor& logits, const Tensor& selection_bias,
                      const reference::MoeRouteParams& params, const Tensor& ids,
                      const Tensor& weights) {
  RouteArgs args;
  args.logits = RowsOf(logits);
  args.ids = RowsOf(ids);
  args.weights = RowsOf(weights);
  args.routing = RoutingOf(logits, selection_bias, params, ids);
  args.tokens = args.routing.used == 0 ? 0 : logits.dims[1];
  const uint32_t experts = args.routing.experts;
  auto kernel = RouteAnyKernel;
  if (args.routing.used <= kLanes) {
    if (experts <= 512) kernel = RouteKernel<16>;
    if (experts <= 256) kernel = RouteKernel<8>;
    if (experts <= 128) kernel = RouteKernel<4>;
    if (experts <= 64) kernel = RouteKernel<2>;
  }
  const int64_t blocks = (args.tokens + kGroups - 1) / kGroups;
  return MakeLaunch(kernel, {static_cast<uint32_t>(blocks)}, {kThreads}, args);
}

Launch MoeCombineLaunch(const Tensor& x, const Tensor& weights, const Tensor& y) {
  const bool wide = y.dims[0] % 4 == 0 && RowsAligned(x, 16) && RowsAligned(y, 16);
  CombineArgs args;
  args.walk = WalkOf(y.dims, wide ? 4 : 1);
  args.x = RowsOf(x);
  args.weights = RowsOf(weights);
  args.y = RowsOf(y);
  args.used = x.dims[1];
  const WalkShape shape = ShapeOf(args.walk, kCombineThreads);
  return MakeLaunch(wide ? CombineKernel<4> : CombineKernel<1>, shape.grid, shape.block, args);
}

}  // namespace trine::hip
