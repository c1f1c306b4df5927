#include "runtime/sequence.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace trine {

absl::Status Sequence::Append(std::span<const int32_t> tokens) {
  for (int32_t token : tokens) {
    if (token < 0 || token >= n_vocab_) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", token, " is not in the vocabulary of ", n_vocab_));
    }
  }
  if (static_cast<int64_t>(tokens.size()) > max_context_ - size()) {
    return absl::OutOfRangeError(absl::StrCat(
        size() == 0 ? "the prompt has " : "the text would have ",
        size() + static_cast<int64_t>(tokens.size()), " tokens, the context holds ", max_context_));
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return absl::OkStatus();
}

void Sequence::Truncate(int64_t n) {
  if (n >= size()) return;
  n = std::max<int64_t>(n, 0);
  tokens_.resize(static_cast<size_t>(n));
  // The last token that stays is evaluated again: its logits are what one goes on from.
  evaluated_ = std::min(evaluated_, std::max<int64_t>(n - 1, 0));
  replay_until_ = std::min(replay_until_, std::max<int64_t>(n - 1, 0));
  blocks_.Truncate(evaluated_);
}

absl::Status Sequence::Erase(int64_t begin, int64_t end) {
  if (begin < 0 || begin > end || end > size()) {
    return absl::InvalidArgumentError(absl::StrCat("there are no tokens ", begin, " to ", end,
                                                   " to erase: the sequence has ", size()));
  }
  if (begin == end) return absl::OkStatus();
  tokens_.erase(tokens_.begin() + begin, tokens_.begin() + end);
  // As in Truncate, the last one is always evaluated again.
  evaluated_ = std::min({evaluated_, begin, std::max<int64_t>(size() - 1, 0)});
  replay_until_ = std::min({replay_until_, begin, std::max<int64_t>(size() - 1, 0)});
  blocks_.Truncate(size());
  return absl::OkStatus();
}

std::span<const float> Sequence::logits() const {
  if (tokens_.empty() || logits_position_ != size() - 1 || pending() != 0) return {};
  return logits_;
}

}  // namespace trine
