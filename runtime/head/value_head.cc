#include "runtime/head/value_head.h"

#include "runtime/head/logistic.h"

namespace trine {

absl::StatusOr<ValueHead> ValueHead::Create(const ModelIdentity& model, Head head) {
  if (absl::Status s = CheckHead(head); !s.ok()) return s;
  if (absl::Status s = CheckFits(head, model); !s.ok()) return s;
  return ValueHead(std::move(head));
}

double ValueHead::Probability(std::span<const float> row) const { return Sigmoid(LogOdds(row)); }

}  // namespace trine
