#include "runtime/sequence.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/model/segment_graph.h"

namespace trine {
namespace {

int64_t InFullBlocks(int64_t n_tokens) { return n_tokens / kBlockPositions * kBlockPositions; }

}  // namespace

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
  BackTo(std::min(evaluated_, std::max<int64_t>(n - 1, 0)));
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
  BackTo(std::min({evaluated_, begin, std::max<int64_t>(size() - 1, 0)}));
  replay_until_ = std::min({replay_until_, begin, std::max<int64_t>(size() - 1, 0)});
  blocks_.Truncate(size());
  return absl::OkStatus();
}

// What comes next is written behind the first `evaluated` positions. Never into a block that others
// hold: it is let go of, and its tokens are read again into another one. That gives the same bits,
// so it is a copy on write, made by computing.
void Sequence::BackTo(int64_t evaluated) {
  const bool inside = evaluated % kBlockPositions != 0;
  const bool shared = inside && blocks_.IsShared(static_cast<size_t>(evaluated / kBlockPositions));
  evaluated_ = shared ? InFullBlocks(evaluated) : evaluated;
  if (shared) replay_until_ = std::max(replay_until_, evaluated);  // observers know of them
  const int64_t kept = (evaluated_ + kBlockPositions - 1) / kBlockPositions;
  blocks_.LetGoOfShared(static_cast<size_t>(kept));
  offered_ = std::min(offered_, InFullBlocks(evaluated_));
}

void Sequence::AdoptFrom(PrefixCache* cache) {
  if (!prefix_space_ || observer_ || in_flight_ != 0) return;
  const int64_t most = InFullBlocks(size() - 1);  // the last token gives the logits
  if (most <= evaluated_) return;
  const int64_t found =
      cache->Adopt(*prefix_space_, std::span(tokens_).first(static_cast<size_t>(most)), evaluated_,
                   looked_for_ == size(), &blocks_);
  looked_for_ = size();
  if (found == evaluated_) return;
  cached_tokens_ += std::max<int64_t>(0, found - std::max(evaluated_, replay_until_));
  evaluated_ = offered_ = found;
}

void Sequence::OfferTo(PrefixCache* cache) {
  const int64_t full = InFullBlocks(evaluated_);
  if (!prefix_space_ || in_flight_ != 0 || full <= offered_) return;
  cache->Offer(*prefix_space_, std::span(tokens_).first(static_cast<size_t>(full)), &blocks_);
  offered_ = full;
}

std::span<const float> Sequence::logits() const {
  if (tokens_.empty() || logits_position_ != size() - 1 || pending() != 0) return {};
  return logits_;
}

}  // namespace trine
