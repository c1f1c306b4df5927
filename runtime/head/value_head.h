// How good a text is, by a head. Immutable; any thread.
#ifndef TRINE_RUNTIME_HEAD_VALUE_HEAD_H_
#define TRINE_RUNTIME_HEAD_VALUE_HEAD_H_

#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/head/head.h"

namespace trine {

// How good a text is by its last row. Of a head for labels the last label is the good one; log-odds
// of a head for branches mean something beside other log-odds of it alone.
class ValueHead {
 public:
  // FAILED_PRECONDITION for a head of another model.
  static absl::StatusOr<ValueHead> Create(const ModelIdentity& model, Head head);

  const Head& head() const { return head_; }

  // The row has as many values as the model's hidden state.
  double LogOdds(std::span<const float> row) const { return head_.linear.LogOdds(row); }
  double Probability(std::span<const float> row) const;

 private:
  explicit ValueHead(Head head) : head_(std::move(head)) {}

  Head head_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_VALUE_HEAD_H_
