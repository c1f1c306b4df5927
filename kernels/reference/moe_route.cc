#include <algorithm>

#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/selection.h"
#include "kernels/reference/sums.h"

namespace trine::reference {
namespace {

// An expert's score as a function of its id, computed when asked: nothing is stored per expert.
class Scores {
 public:
  Scores(const float* logits, int64_t n, MoeScoring scoring) : logits_(logits), scoring_(scoring) {
    if (scoring != MoeScoring::kSoftmax) return;
    largest_ = *std::max_element(logits, logits + n);
    Sums32 sums;
    for (int64_t id = 0; id < n; ++id) sums.Add(id, Exp(logits[id] - largest_));
    inverse_sum_ = Recip(sums.Total());
  }

  float operator()(int64_t id) const {
    switch (scoring_) {
      case MoeScoring::kSoftmax:
        return Canon(Exp(logits_[id] - largest_) * inverse_sum_);
      case MoeScoring::kSigmoid:
        return Sigmoid(logits_[id]);
      case MoeScoring::kSelectedSoftmax:
        break;
    }
    return logits_[id];
  }

 private:
  const float* logits_;
  MoeScoring scoring_;
  float largest_ = 0.0f;
  float inverse_sum_ = 0.0f;
};

// Sums over the selected are short: one by one, in the order of selection.
void DivideBySum(float* weights, int64_t n) {
  float sum = weights[0];
  for (int64_t i = 1; i < n; ++i) sum = sum + weights[i];
  const float inverse = Recip(sum);
  for (int64_t i = 0; i < n; ++i) weights[i] = Canon(weights[i] * inverse);
}

void SoftmaxOfSelected(float* weights, int64_t n) {
  const float largest = *std::max_element(weights, weights + n);
  for (int64_t i = 0; i < n; ++i) weights[i] = Exp(weights[i] - largest);
  DivideBySum(weights, n);
}

}  // namespace

void MoeRoute(const View& logits, const View* selection_bias, const MoeRouteParams& params,
              const View& ids, const View& weights, Range tokens) {
  const int64_t n_experts = logits.dims[0];
  const int64_t n_used = ids.dims[0];
  const float* bias = selection_bias ? F32Row(*selection_bias, 0) : nullptr;
  for (int64_t token = tokens.begin; token < tokens.end; ++token) {
    const Scores score(F32Row(logits, token), n_experts, params.scoring);
    const auto selection_score = [&](int64_t id) {
      return bias ? Canon(score(id) + bias[id]) : score(id);
    };
    int32_t* id = I32Row(ids, token);
    float* weight = F32Row(weights, token);
    Ranked ranked = {};
    for (int64_t slot = 0; slot < n_used; ++slot) {
      ranked = NextRanked(n_experts, selection_score, ranked);
      id[slot] = static_cast<int32_t>(ranked.id);
      weight[slot] = score(ranked.id);
    }
    if (params.scoring == MoeScoring::kSelectedSoftmax) SoftmaxOfSelected(weight, n_used);
    if (params.normalize) DivideBySum(weight, n_used);
    if (params.scale != 1.0f) {
      for (int64_t slot = 0; slot < n_used; ++slot)
        weight[slot] = Canon(weight[slot] * params.scale);
    }
  }
}

}  // namespace trine::reference
