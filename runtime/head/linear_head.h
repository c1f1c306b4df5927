// A linear function of a row of the hidden state: what a head computes. Immutable once made; any
// thread.
#ifndef TRINE_RUNTIME_HEAD_LINEAR_HEAD_H_
#define TRINE_RUNTIME_HEAD_LINEAR_HEAD_H_

#include <span>
#include <vector>

namespace trine {

struct LinearHead {
  // One value for each of the row's. `scale` is above 0.
  std::vector<double> mean, scale, weights;
  double bias = 0;

  // bias + the sum of weights[i] * ((row[i] - mean[i]) / scale[i]) by increasing i, in binary64.
  // The row has as many values as the head.
  double LogOdds(std::span<const float> row) const;
};

// What rows are standardised by: the mean of each value, and its deviation, or 1 where it is always
// the same. Of one row at least.
void Standardize(std::span<const std::vector<float>* const> rows, LinearHead* head);

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_LINEAR_HEAD_H_
