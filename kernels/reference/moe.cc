#include <algorithm>

#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"

namespace trine::reference {
namespace {

// A place in the order in which the best of n scores are taken: the highest first, and among equal
// scores the lowest id first.
struct Ranked {
  float score;
  int64_t id = -1;  // -1: none
};

bool RanksBefore(const Ranked& a, const Ranked& b) {
  return a.score > b.score || (a.score == b.score && a.id < b.id);
}

// Returns the next place in the order after `previous`; the first if previous.id is -1. `score`
// maps an id to its score. Scans all scores again for each place, because that needs no memory.
template <typename Score>
Ranked NextRanked(int64_t n, const Score& score, const Ranked& previous) {
  Ranked best;
  for (int64_t id = 0; id < n; ++id) {
    const Ranked candidate = {score(id), id};
    if (previous.id >= 0 && !RanksBefore(previous, candidate)) continue;
    if (best.id < 0 || RanksBefore(candidate, best)) best = candidate;
  }
  return best;
}

// An expert's score as a function of its id, computed on demand: nothing is stored per expert.
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

// Divides the weights of the selected experts by their sum, which is added up one by one, in order.
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

void TopK(const View& logits, const View& ids, const View& values, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* row = F32Row(logits, r);
    Ranked ranked = {};
    for (int64_t place = 0; place < ids.dims[0]; ++place) {
      ranked = NextRanked(
          logits.dims[0], [row](int64_t id) { return row[id]; }, ranked);
      I32Row(ids, r)[place] = static_cast<int32_t>(ranked.id);
      F32Row(values, r)[place] = ranked.score;
    }
  }
}

void MoeCombine(const View& x, const View& weights, const View& dst, Range rows) {
  for (int64_t token = rows.begin; token < rows.end; ++token) {
    const float* weight = F32Row(weights, token);
    float* y = F32Row(dst, token);
    for (int64_t i = 0; i < dst.dims[0]; ++i) {
      float sum = Canon(F32Row(x, 0, token, 0)[i] * weight[0]);
      for (int64_t slot = 1; slot < x.dims[1]; ++slot) {
        sum = sum + Canon(F32Row(x, slot, token, 0)[i] * weight[slot]);
      }
      y[i] = Canon(sum);
    }
  }
}

}  // namespace trine::reference
