// Logistic regression: fits a linear function of rows. The function's sign says to which of two
// classes a row belongs. Uses Newton's method with conjugate gradients, in binary64. Sums have a
// defined order, and neither randomness nor library functions are used, so the result has the same
// bits on every machine. Pure functions; any thread may call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

// Returns 1 / (1 + exp(-log_odds)), with log_odds limited to -690 ... 690.
double Sigmoid(double log_odds);
// Returns the loss -log(Sigmoid(margin)), where `margin` is the log-odds of the right class.
double LogLoss(double margin);

struct LogisticOptions {
  double l2 = 0.01;  // above 0: with 0, classes that can be separated have no best function
  bool bias = true;  // false: the function is 0 for a row of zeros
  int64_t max_iterations = 100;
  double tolerance = 1e-7;  // ends when the gradient's length is below it
};

struct LogisticFit {
  std::vector<double> weights;
  double bias = 0;
  int64_t iterations = 0;
  double loss = 0;      // the minimised function's value
  double gradient = 0;  // the gradient's length at the end
};

// Minimises mean(LogLoss(+-(weights . row + bias))) + l2 / 2 * |weights|^2 over the rows, which
// follow each other with `width` values each. The sign of row i is + if positive[i] is 1, and - if
// it is 0. Returns INVALID_ARGUMENT for sizes that don't match and for values that are not finite,
// INTERNAL if it does not converge.
absl::StatusOr<LogisticFit> FitLogistic(std::span<const double> rows, size_t width,
                                        std::span<const uint8_t> positive,
                                        const LogisticOptions& options);

}  // namespace trine
