// Candidates for the next token, weighed anew by what a head says of the text with each of them.
//
// The caller asks which candidates to try, evaluates the sequence with each of them behind it,
// gives the log-odds a head has for each one's row, and samples from the row of logits as it is
// then. In defined arithmetic (docs/numerics.md, "Heads"): the same on every machine. After Create
// and the first step nothing is allocated. One thread at a time.
#ifndef TRINE_RUNTIME_HEAD_TOKEN_RERANKER_H_
#define TRINE_RUNTIME_HEAD_TOKEN_RERANKER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trine {

struct RerankOptions {
  int32_t top = 8;      // candidates of a step
  double weight = 1.0;  // what log-odds are multiplied by; 0: nothing changes
  double limit = 10.0;  // of log-odds either way: a head that is too sure forbids nothing
  // Tokens that are no candidates are forbidden, unless the weight is 0. False: they keep their
  // logits.
  bool only_top = true;

  static constexpr int32_t kMostTop = 64;
  static constexpr double kMostWeight = 1e6;  // either way, and of the limit
};

// INVALID_ARGUMENT names what is out of its range.
absl::Status CheckRerankOptions(const RerankOptions& options);

class TokenReranker {
 public:
  static absl::StatusOr<TokenReranker> Create(const RerankOptions& options);

  // The tokens with the highest logits, highest first, of equal ones the lowest id first; fewer
  // than `top` where fewer are allowed. Bit i % 32 of allowed[i / 32] allows token i; an empty span
  // allows all. No NaN and no -inf is a candidate. Until the next call.
  std::span<const int32_t> Candidates(std::span<const float> logits,
                                      std::span<const uint32_t> allowed = {});

  // Adds weight * log_odds[k], within the limit, to the logit of candidates[k]. Sum and product in
  // binary64, the result rounded once. INVALID_ARGUMENT, with the logits as they were, for sizes
  // that differ, for log-odds that are NaN, and for a candidate outside the row or named twice.
  absl::Status Apply(std::span<const int32_t> candidates, std::span<const double> log_odds,
                     std::span<float> logits);

  const RerankOptions& options() const { return options_; }

 private:
  explicit TokenReranker(const RerankOptions& options) : options_(options) {}
  absl::Status CheckCandidates(std::span<const int32_t> candidates,
                               std::span<const double> log_odds, size_t n_vocab);

  RerankOptions options_;
  std::vector<int32_t> candidates_;
  std::vector<int32_t> sorted_;
  std::vector<float> weighed_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_TOKEN_RERANKER_H_
