#include "runtime/head/logistic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/model/arch/exact_double.h"

namespace trine {
namespace {

constexpr double kMostLogOdds = 690;  // exact_double::Exp accepts up to 700
constexpr int kMostHalvings = 40;
constexpr int64_t kMostConjugate = 500;

// Adds every fourth product into one of four sums, because the additions of one sum wait for each
// other.
double Dot(std::span<const double> a, std::span<const double> b) {
  double sums[4] = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + 4 <= a.size(); i += 4) {
    for (size_t k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (size_t k = 0; i + k < a.size(); ++k) sums[k] += a[i + k] * b[i + k];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The function to minimise and its derivatives. A point has a value for each weight, then the bias.
class Objective {
 public:
  Objective(std::span<const double> rows, size_t width, std::span<const uint8_t> positive,
            const LogisticOptions& options)
      : rows_(rows), width_(width), positive_(positive), options_(options) {}

  size_t size() const { return width_ + 1; }

  // Returns the function's value at the point, and keeps the log-odds of all rows there.
  double Evaluate(const std::vector<double>& point) {
    const double n = static_cast<double>(positive_.size());
    double loss = 0;
    log_odds_.resize(positive_.size());
    for (size_t i = 0; i < positive_.size(); ++i) {
      log_odds_[i] = Dot(Row(i), Weights(point)) + point[width_];
      loss += LogLoss(positive_[i] != 0 ? log_odds_[i] : -log_odds_[i]);
    }
    return loss / n + 0.5 * options_.l2 * Dot(Weights(point), Weights(point));
  }

  // Returns the gradient. `point` must be the one evaluated last.
  std::vector<double> Gradient(const std::vector<double>& point) {
    const double n = static_cast<double>(positive_.size());
    curvature_.resize(positive_.size());
    std::vector<double> gradient(size(), 0.0);
    for (size_t i = 0; i < positive_.size(); ++i) {
      const double p = Sigmoid(log_odds_[i]);
      curvature_[i] = p * (1.0 - p) / n;
      AddRow(i, (p - (positive_[i] != 0 ? 1.0 : 0.0)) / n, &gradient);
    }
    Regularize(point, options_.l2, &gradient);
    return gradient;
  }

  // Returns the second derivative, at the point of the last gradient, times a direction.
  std::vector<double> Curve(const std::vector<double>& direction) const {
    std::vector<double> result(size(), 0.0);
    for (size_t i = 0; i < positive_.size(); ++i) {
      const double along = Dot(Row(i), Weights(direction)) + direction[width_];
      AddRow(i, curvature_[i] * along, &result);
    }
    Regularize(direction, options_.l2, &result);
    return result;
  }

 private:
  std::span<const double> Row(size_t i) const { return rows_.subspan(i * width_, width_); }
  std::span<const double> Weights(const std::vector<double>& point) const {
    return std::span(point).first(width_);
  }
  void AddRow(size_t i, double factor, std::vector<double>* sum) const {
    const std::span<const double> row = Row(i);
    for (size_t k = 0; k < width_; ++k) (*sum)[k] += factor * row[k];
    if (options_.bias) (*sum)[width_] += factor;
  }
  void Regularize(const std::vector<double>& point, double l2, std::vector<double>* sum) const {
    for (size_t k = 0; k < width_; ++k) (*sum)[k] += l2 * point[k];
  }

  std::span<const double> rows_;
  const size_t width_;
  std::span<const uint8_t> positive_;
  const LogisticOptions& options_;
  std::vector<double> log_odds_;
  std::vector<double> curvature_;
};

// Returns Newton's step, as far as conjugate gradients get within their limit.
std::vector<double> Direction(const Objective& objective, const std::vector<double>& gradient) {
  std::vector<double> step(gradient.size(), 0.0), residual(gradient.size());
  for (size_t i = 0; i < gradient.size(); ++i) residual[i] = -gradient[i];
  std::vector<double> search = residual;
  double squares = Dot(residual, residual);
  const double length = std::sqrt(squares);
  const double enough = length * std::min(0.1, std::sqrt(length));
  for (int64_t k = 0; k < kMostConjugate && std::sqrt(squares) > enough; ++k) {
    const std::vector<double> curved = objective.Curve(search);
    const double along = Dot(search, curved);
    if (!(along > 0)) break;  // flat within binary64's precision
    const double far = squares / along;
    for (size_t i = 0; i < step.size(); ++i) {
      step[i] += far * search[i];
      residual[i] -= far * curved[i];
    }
    const double next = Dot(residual, residual);
    for (size_t i = 0; i < step.size(); ++i) search[i] = residual[i] + (next / squares) * search[i];
    squares = next;
  }
  return step;
}

absl::Status CheckProblem(std::span<const double> rows, size_t width,
                          std::span<const uint8_t> positive, const LogisticOptions& options) {
  if (width == 0 || positive.empty() || rows.size() != width * positive.size()) {
    return Invalid(rows.size(), " values are not ", positive.size(), " rows of ", width,
                   ", one at least");
  }
  if (!(options.l2 > 0) || !std::isfinite(options.l2)) {
    return absl::InvalidArgumentError("the L2 weight must be above 0");
  }
  if (!std::all_of(rows.begin(), rows.end(), [](double x) { return std::isfinite(x); })) {
    return absl::InvalidArgumentError("a row has a value that is not finite");
  }
  return absl::OkStatus();
}

}  // namespace

double Sigmoid(double log_odds) {
  const double e = exact_double::Exp(-std::min(std::abs(log_odds), kMostLogOdds));
  return log_odds < 0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}

double LogLoss(double margin) {
  const double e = exact_double::Exp(-std::min(std::abs(margin), kMostLogOdds));
  return (margin < 0 ? -margin : 0.0) + exact_double::Log(1.0 + e);
}

absl::StatusOr<LogisticFit> FitLogistic(std::span<const double> rows, size_t width,
                                        std::span<const uint8_t> positive,
                                        const LogisticOptions& options) {
  if (absl::Status s = CheckProblem(rows, width, positive, options); !s.ok()) return s;
  Objective objective(rows, width, positive, options);
  std::vector<double> point(objective.size(), 0.0);
  LogisticFit fit;
  fit.loss = objective.Evaluate(point);
  for (;; ++fit.iterations) {
    const std::vector<double> gradient = objective.Gradient(point);
    fit.gradient = std::sqrt(Dot(gradient, gradient));
    if (fit.gradient <= options.tolerance) break;
    if (fit.iterations == options.max_iterations) {
      return absl::InternalError(absl::StrCat("after ", fit.iterations,
                                              " iterations the gradient is still ", fit.gradient,
                                              " long: a larger L2 weight converges sooner"));
    }
    const std::vector<double> step = Direction(objective, gradient);
    const double slope = Dot(gradient, step);
    std::vector<double> next(point.size());
    double factor = 1.0, loss = fit.loss;
    bool down = false;
    for (int halvings = 0; halvings < kMostHalvings && !down; ++halvings, factor *= 0.5) {
      for (size_t i = 0; i < point.size(); ++i) next[i] = point[i] + factor * step[i];
      loss = objective.Evaluate(next);
      down = loss <= fit.loss + 1e-4 * factor * slope;
    }
    if (!down) {  // at the minimum, within binary64's precision
      objective.Evaluate(point);
      break;
    }
    point = std::move(next);
    fit.loss = loss;
  }
  fit.bias = point.back();
  point.pop_back();
  fit.weights = std::move(point);
  return fit;
}

}  // namespace trine
