#include "runtime/head/linear_head.h"

#include <cmath>

namespace trine {
namespace {

constexpr double kConstant = 1e-12;  // of the mean: a deviation below it is rounding

}  // namespace

double LinearHead::LogOdds(std::span<const float> row) const {
  double sum = bias;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i] * ((static_cast<double>(row[i]) - mean[i]) / scale[i]);
  }
  return sum;
}

void Standardize(std::span<const std::vector<float>* const> rows, LinearHead* head) {
  const size_t width = rows[0]->size();
  const double n = static_cast<double>(rows.size());
  head->mean.assign(width, 0.0);
  head->scale.assign(width, 0.0);
  for (const std::vector<float>* row : rows) {
    for (size_t i = 0; i < width; ++i) head->mean[i] += static_cast<double>((*row)[i]);
  }
  for (double& mean : head->mean) mean /= n;
  for (const std::vector<float>* row : rows) {
    for (size_t i = 0; i < width; ++i) {
      const double off = static_cast<double>((*row)[i]) - head->mean[i];
      head->scale[i] += off * off;
    }
  }
  for (size_t i = 0; i < width; ++i) {
    head->scale[i] = std::sqrt(head->scale[i] / n);
    if (!(head->scale[i] > kConstant * std::abs(head->mean[i]))) head->scale[i] = 1.0;
  }
}

}  // namespace trine
