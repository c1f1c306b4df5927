#include "runtime/head/token_reranker.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/invalid.h"

namespace trine {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

}  // namespace

absl::Status CheckRerankOptions(const RerankOptions& o) {
  if (o.top < 1 || o.top > RerankOptions::kMostTop) {
    return Invalid("candidates to rerank are 1 to ", RerankOptions::kMostTop);
  }
  if (!(std::abs(o.weight) <= RerankOptions::kMostWeight)) {
    return absl::InvalidArgumentError("the head's weight is no sensible number");
  }
  if (!(o.limit > 0 && o.limit <= RerankOptions::kMostWeight)) {
    return absl::InvalidArgumentError("the limit of log-odds is no sensible number above 0");
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenReranker> TokenReranker::Create(const RerankOptions& options) {
  if (absl::Status s = CheckRerankOptions(options); !s.ok()) return s;
  return TokenReranker(options);
}

std::span<const int32_t> TokenReranker::Candidates(std::span<const float> logits,
                                                   std::span<const uint32_t> allowed) {
  const auto before = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const auto top = static_cast<size_t>(options_.top);
  candidates_.clear();
  candidates_.reserve(top + 1);
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!allowed.empty() && (allowed[i / 32] >> (i % 32) & 1) == 0) continue;
    if (!(logits[i] > kForbidden)) continue;
    const auto token = static_cast<int32_t>(i);
    if (candidates_.size() == top && !before(token, candidates_.back())) continue;
    candidates_.insert(std::upper_bound(candidates_.begin(), candidates_.end(), token, before),
                       token);
    if (candidates_.size() > top) candidates_.pop_back();
  }
  return candidates_;
}

absl::Status TokenReranker::CheckCandidates(std::span<const int32_t> candidates,
                                            std::span<const double> log_odds, size_t n_vocab) {
  if (candidates.size() != log_odds.size()) {
    return Invalid(candidates.size(), " candidates have ", log_odds.size(), " values");
  }
  for (const double x : log_odds) {
    if (std::isnan(x)) return absl::InvalidArgumentError("a candidate's value is NaN");
  }
  sorted_.assign(candidates.begin(), candidates.end());
  std::sort(sorted_.begin(), sorted_.end());
  for (size_t k = 0; k < sorted_.size(); ++k) {
    if (sorted_[k] < 0 || static_cast<size_t>(sorted_[k]) >= n_vocab) {
      return Invalid("candidate ", sorted_[k], " is not in the vocabulary of ", n_vocab);
    }
    if (k > 0 && sorted_[k] == sorted_[k - 1]) {
      return Invalid("candidate ", sorted_[k], " is named twice");
    }
  }
  return absl::OkStatus();
}

absl::Status TokenReranker::Apply(std::span<const int32_t> candidates,
                                  std::span<const double> log_odds, std::span<float> logits) {
  if (absl::Status s = CheckCandidates(candidates, log_odds, logits.size()); !s.ok()) return s;
  weighed_.resize(candidates.size());
  for (size_t k = 0; k < candidates.size(); ++k) {
    const double value = std::clamp(log_odds[k], -options_.limit, options_.limit);
    const auto old = static_cast<double>(logits[static_cast<size_t>(candidates[k])]);
    weighed_[k] = static_cast<float>(old + options_.weight * value);
  }
  if (options_.only_top && options_.weight != 0 && !candidates.empty()) {
    std::fill(logits.begin(), logits.end(), kForbidden);
  }
  for (size_t k = 0; k < candidates.size(); ++k) {
    logits[static_cast<size_t>(candidates[k])] = weighed_[k];
  }
  return absl::OkStatus();
}

}  // namespace trine
