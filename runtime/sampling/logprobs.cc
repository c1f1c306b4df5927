#include "runtime/sampling/logprobs.h"

#include <algorithm>
#include <cstddef>

#include "runtime/sampling/exact_log.h"
#include "runtime/sampling/row_passes.h"

namespace trine {

LogSoftmax::LogSoftmax(std::span<const float> logits) {
  if (logits.empty()) return;
  max = kRemoved;
  for (const float x : logits) max = std::max(max, Sanitised(x));
  uint64_t total = 0;
  for (const float x : logits) total += WeightOfGap(max - Sanitised(x));
  log_sum = ExactLog(static_cast<double>(total) * 0x1p-40);
}

double LogSoftmax::Of(float logit) const {
  return (static_cast<double>(Sanitised(logit)) - static_cast<double>(max)) - log_sum;
}

void TopLogprobs(std::span<const float> logits, const LogSoftmax& softmax, int32_t n,
                 std::vector<TokenLogprob>* top) {
  top->clear();
  if (n <= 0) return;
  const size_t keep = std::min(static_cast<size_t>(n), logits.size());
  // A heap whose front is the last in order. Logits are compared, since log-probabilities may be
  // equal where they differ.
  const auto before = [&](const TokenLogprob& a, const TokenLogprob& b) {
    return RanksBefore({Sanitised(logits[static_cast<size_t>(a.token)]), a.token},
                       {Sanitised(logits[static_cast<size_t>(b.token)]), b.token});
  };
  for (size_t i = 0; i < logits.size(); ++i) {
    const TokenLogprob entry = {static_cast<int32_t>(i), softmax.Of(logits[i])};
    if (top->size() == keep) {
      if (!before(entry, top->front())) continue;
      std::pop_heap(top->begin(), top->end(), before);
      top->back() = entry;
    } else {
      top->push_back(entry);
    }
    std::push_heap(top->begin(), top->end(), before);
  }
  std::sort_heap(top->begin(), top->end(), before);
}

}  // namespace trine
