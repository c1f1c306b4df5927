// Selects the experts of a token, by one group of lanes.
#pragma once

#include <cstdint>

#include "kernels/hip/gpu/device.h"
#include "kernels/hip/ops/lane_results.h"
#include "kernels/hip/ops/scalar_functions.h"
#include "kernels/hip/weights/tensor.h"
#include "kernels/reference/ops.h"

namespace trine::hip {

// What experts are selected by.
struct Routing {
  const float* bias = nullptr;  // or null
  uint32_t experts = 0, used = 0;
  reference::MoeScoring scoring = reference::MoeScoring::kSoftmax;
  bool normalize = false;
  float scale = 1.0f;
};

inline Routing RoutingOf(const Tensor& logits, const Tensor& selection_bias,
                         const reference::MoeRouteParams& params, const Tensor& ids) {
  return {reinterpret_cast<const float*>(selection_bias.data),
          static_cast<uint32_t>(logits.dims[0]),
          static_cast<uint32_t>(ids.dims[0]),
          params.scoring,
          params.normalize,
          params.scale};
}

#ifdef TRINE_DEVICE

TRINE_DEVICE float RouteScore(float logit, reference::MoeScoring scoring, float largest,
                              float inverse_sum) {
  if (scoring == reference::MoeScoring::kSelectedSoftmax) return logit;
  if (scoring == reference::MoeScoring::kSigmoid) return Sigmoid(logit);
  return Canon(Exp(logit - largest) * inverse_sum);
}

struct Selected {
  uint32_t id;
  float weight;
};

// Routes among up to 32 * kOfLane experts, of which up to 32 are used. Lane i has the experts of
// class i of the sum over all experts, and gets the i-th selected expert.
template <int kOfLane>
TRINE_DEVICE Selected Route(const Routing& args, const float* logits, uint32_t lane) {
  using reference::MoeScoring;
  const auto id_of = [&](int i) { return static_cast<uint32_t>(i) * kLanes + lane; };
  float score[kOfLane], bias[kOfLane];
  TRINE_UNROLL
  for (int i = 0; i < kOfLane; ++i) {
    const bool there = id_of(i) < args.experts;
    score[i] = there ? logits[id_of(i)] : 0.0f;
    bias[i] = there && args.bias != nullptr ? args.bias[id_of(i)] : 0.0f;
  }
  float largest = 0.0f, inverse_sum = 0.0f;
  if (args.scoring == MoeScoring::kSoftmax) {
    uint32_t most = 0;
    TRINE_UNROLL
    for (int i = 0; i < kOfLane; ++i) {
      const uint32_t key = id_of(i) < args.experts ? KeyOf(score[i]) : 0;
      most = key > most ? key : most;
    }
    largest = ValueOf(LaneMax(most));
    float sum = 0.0f;
    TRINE_UNROLL
    for (int i = 0; i < kOfLane; ++i) {
      if (id_of(i) < args.experts) sum = sum + Exp(score[i] - largest);
    }
    inverse_sum = Recip(JoinClasses(sum));
  }
  uint32_t key[kOfLane];  // 0: not there, or taken
  TRINE_UNROLL
  for (int i = 0; i < kOfLane; ++i) {
    score[i] = RouteScore(score[i], args.scoring, largest, inverse_sum);
    const float rank = args.bias != nullptr ? Canon(score[i] + bias[i]) : score[i];
    key[i] = id_of(i) < args.experts ? KeyOf(rank) : 0;
  }
  uint32_t my_id = 0;
  float my_weight = 0.0f;
  for (uint32_t slot = 0; slot < args.used; ++slot) {
    Best own = {0, 0xffffffffu};
    TRINE_UNROLL
    for (int i = 0; i < kOfLane; ++i) {
      if (key[i] > own.key) own = {key[i], id_of(i)};
    }
    const Best best = BestOfLanes(own);
    float weight = 0.0f;
    TRINE_UNROLL
    for (int i = 0; i < kOfLane; ++i) {
      if (id_of(i) == best.id) key[i] = 0, weight = score[i];
    }
    weight = LaneRead(weight, static_cast<int>(best.id % kLanes));
    if (lane == slot) my_id = best.id, my_weight = weight;
  }
  const auto divide_by_sum = [&] {
    // Adds weights one by one, in the order of selection.
    float sum = LaneRead(my_weight, 0);
    for (uint32_t slot = 1; slot < args.used; ++slot) {
      sum = sum + LaneRead(my_weight, static_cast<int>(slot));
    }
    my_weight = Canon(my_weight * Recip(sum));
  };
  if (args.scoring == MoeScoring::kSelectedSoftmax) {
    const float most = ValueOf(LaneMax(lane < args.used ? KeyOf(my_weight) : 0));
    my_weight = Exp(my_weight - most);
    divide_by_sum();
  }
  if (args.normalize) divide_by_sum();
  if (args.scale != 1.0f) my_weight = Canon(my_weight * args.scale);
  return {my_id, my_weight};
}

#endif

}  // namespace trine::hip
