// Changes the logits of candidates for the next token by a head's ratings of the text with each
// candidate.
//
// The caller gets the candidates, evaluates the sequence followed by each of them, passes the
// head's log-odds for each row, and samples from the changed row of logits. The results are the
// same on every machine, because docs/numerics.md ("Heads") defines the arithmetic. Allocates
// nothing after Create and the first step. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trine {

struct RerankOptions {
  int32_t top = 8;      // the number of candidates for a token
  double weight = 1.0;  // log-odds are multiplied by this; 0: logits do not change
  // Log-odds are limited to -limit ... limit, so that an overconfident head can't forbid a token.
  double limit = 10.0;
  // true: tokens that are not candidates are forbidden, unless the weight is 0. false: they keep
  // their logits.
  bool only_top = true;

  static constexpr int32_t kMostTop = 64;
  static constexpr double kMostWeight = 1e6;  // the largest magnitude of weight and limit
};

// Returns INVALID_ARGUMENT, naming the option, if an option is out of range.
absl::Status CheckRerankOptions(const RerankOptions& options);

class TokenReranker {
 public:
  static absl::StatusOr<TokenReranker> Create(const RerankOptions& options);

  // Returns the tokens with the highest logits, the highest first. Among equal logits the lowest id
  // comes first. Returns fewer than `top` if fewer are allowed. Bit i % 32 of allowed[i / 32]
  // allows token i; an empty span allows all. A token whose logit is NaN or -inf is never a
  // candidate. Valid until the next call.
  std::span<const int32_t> Candidates(std::span<const float> logits,
                                      std::span<const uint32_t> allowed = {});

  // Adds weight * log_odds[k] to the logit of candidates[k], with log_odds[k] limited. Computes in
  // binary64 and rounds the result once. Returns INVALID_ARGUMENT, and leaves the logits as they
  // are, for sizes that differ, for log-odds that are NaN, and for a candidate that is outside the
  // row or occurs twice.
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
