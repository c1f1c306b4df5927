// Logistic regression: a linear function of a row whose sign says which of two classes it is of.
// Newton's method with conjugate gradients, in binary64, sums in a written order, no randomness and
// no library functions: the same bits on every machine. Pure functions; any thread.
#ifndef TRINE_RUNTIME_HEAD_LOGISTIC_H_
#define TRINE_RUNTIME_HEAD_LOGISTIC_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

// 1 / (1 + exp(-log_odds)). Not more than 690 from 0 counts.
double Sigmoid(double log_odds);
// -log(Sigmoid(margin)): what it costs to have believed the right class by so much.
double LogLoss(double margin);

struct LogisticOptions {
  double l2 = 0.01;  // above 0: classes that can be told apart have no best line without it
  bool bias = true;  // false: the line goes through 0
  int64_t max_iterations = 100;
  double tolerance = 1e-7;  // of the gradient's length: below it the loss no longer shows a way
};

struct LogisticFit {
  std::vector<double> weights;
  double bias = 0;
  int64_t iterations = 0;
  double loss = 0;      // what was minimised
  double gradient = 0;  // its length at the end
};

// Minimises mean(LogLoss(+-(weights . row + bias))) + l2 / 2 * |weights|^2 over the rows, one
// behind another, `width` values each; positive[i] is 1 for the class the sign + stands for, else
// 0. INVALID_ARGUMENT for sizes that do not fit and for values that are not finite; INTERNAL where
// it came to no end.
absl::StatusOr<LogisticFit> FitLogistic(std::span<const double> rows, size_t width,
                                        std::span<const uint8_t> positive,
                                        const LogisticOptions& options);

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_LOGISTIC_H_
