// Log-probabilities of tokens in the model's own distribution: the softmax of a whole row of
// logits, before bias, penalties or temperature. Free functions: any thread may call them.

#ifndef TRINE_RUNTIME_SAMPLING_LOGPROBS_H_
#define TRINE_RUNTIME_SAMPLING_LOGPROBS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace trine {

struct TokenLogprob {
  int32_t token = 0;
  double logprob = 0.0;
};

// What every log-probability of a row needs; a token's is Of(its logit).
struct LogSoftmax {
  float max = 0.0f;
  double log_sum = 0.0;  // of e^(x - max)

  explicit LogSoftmax(std::span<const float> logits);
  double Of(float logit) const;
};

// The `n` most probable tokens, by descending logit, equal ones by lowest id. Reuses *top.
void TopLogprobs(std::span<const float> logits, const LogSoftmax& softmax, int32_t n,
                 std::vector<TokenLogprob>* top);

}  // namespace trine

#endif  // TRINE_RUNTIME_SAMPLING_LOGPROBS_H_
