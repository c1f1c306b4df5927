#include "runtime/batch/sequence.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/model/arch/segment_graph.h"

namespace trine {
namespace {

// The least number of tokens to allocate memory for.
constexpr size_t kLeastRoom = 256;

}  // namespace

absl::Status Sequence::Append(std::span<const int32_t> tokens) {
  for (int32_t token : tokens) {
    if (token < 0 || token >= n_vocab_) {
      return Invalid("token ", token, " is not in the vocabulary of ", n_vocab_);
    }
  }
  if (static_cast<int64_t>(tokens.size()) > max_context_ - size()) {
    return absl::OutOfRangeError(absl::StrCat(
        size() == 0 ? "the prompt has " : "the text would have ",
        size() + static_cast<int64_t>(tokens.size()), " tokens, the context holds ", max_context_));
  }
  const size_t needed = tokens_.size() + tokens.size();
  if (tokens_.capacity() < needed) {
    tokens_.reserve(std::max({needed, 2 * tokens_.capacity(), kLeastRoom}));
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return absl::OkStatus();
}

void Sequence::Truncate(int64_t n) {
  if (n >= size()) return;
  n = std::max<int64_t>(n, 0);
  DropFetch();
  tokens_.resize(static_cast<size_t>(n));
  // The last token that stays is evaluated again, because its logits are needed next.
  BackTo(std::min(evaluated_, std::max<int64_t>(n - 1, 0)));
  replay_until_ = std::min(replay_until_, std::max<int64_t>(n - 1, 0));
  blocks_.Truncate(evaluated_);
  logits_position_ = hidden_position_ = -1;
}

absl::Status Sequence::Erase(int64_t begin, int64_t end) {
  if (begin < 0 || begin > end || end > size()) {
    return Invalid("there are no tokens ", begin, " to ", end, " to erase: the sequence has ",
                   size());
  }
  if (begin == end) return absl::OkStatus();
  DropFetch();
  tokens_.erase(tokens_.begin() + begin, tokens_.begin() + end);
  // The last token is always evaluated again, as in Truncate.
  BackTo(std::min({evaluated_, begin, std::max<int64_t>(size() - 1, 0)}));
  replay_until_ = std::min({replay_until_, begin, std::max<int64_t>(size() - 1, 0)});
  blocks_.Truncate(size());
  logits_position_ = hidden_position_ = -1;
  return absl::OkStatus();
}

int64_t Sequence::InFullBlocks(int64_t n_tokens) {
  return n_tokens / kBlockPositions * kBlockPositions;
}

void Sequence::BackTo(int64_t evaluated) {
  evaluated_ = evaluated;
  const int64_t kept = (evaluated_ + kBlockPositions - 1) / kBlockPositions;
  blocks_.LetGoOfShared(static_cast<size_t>(kept));
  offered_ = std::min(offered_, InFullBlocks(evaluated_));
}

std::unique_ptr<Sequence> Sequence::Fork() {
  auto fork = std::make_unique<Sequence>(blocks_.pool(), n_vocab_, max_context_);
  fork->tokens_ = tokens_;
  fork->evaluated_ = fork->cached_tokens_ = evaluated_;
  const auto held = static_cast<size_t>((evaluated_ + kBlockPositions - 1) / kBlockPositions);
  fork->blocks_.Adopt(std::span(blocks_.blocks()).first(held));
  fork->logits_ = logits_;
  fork->logits_lent_ = logits_lent_ = true;
  fork->logits_position_ = logits_position_;
  fork->hidden_ = hidden_;
  fork->keeps_hidden_ = keeps_hidden_;
  fork->hidden_row_ = hidden_row_;
  fork->hidden_position_ = hidden_position_;
  fork->unsettled_ = unsettled_;
  fork->replay_until_ = replay_until_;
  fork->prefix_space_ = prefix_space_;
  fork->offered_ = offered_;
  fork->looked_for_ = looked_for_;
  fork->epoch_ = epoch_;
  fork->served_ = served_;
  return fork;
}

void Sequence::TakeOver(Sequence* fork) {
  DropFetch();
  blocks_.Swap(&fork->blocks_);
  evaluated_ = fork->evaluated_;
  logits_.swap(fork->logits_);
  logits_lent_ = fork->logits_lent_;
  logits_position_ = fork->logits_position_;
  hidden_row_.swap(fork->hidden_row_);
  hidden_position_ = fork->hidden_position_;
  unsettled_ = fork->unsettled_;
  epoch_ = fork->epoch_;
  served_ = fork->served_;
  if (Observes(logits_position_)) observer_(logits_position_, *logits_);
}

void Sequence::ReadLastAgain() {
  if (size() == 0 || pending() != 0) return;
  replay_until_ = std::max(replay_until_, evaluated_);
  BackTo(evaluated_ - 1);
}

Sequence::Mark Sequence::MarkHere() {
  if (logits().empty()) return {size(), nullptr};
  logits_lent_ = true;
  return {size(), logits_};
}

void Sequence::Regress(const Mark& mark) {
  DropFetch();
  tokens_.resize(static_cast<size_t>(mark.size));
  // Without logits the last token is evaluated again, as in Truncate.
  const int64_t read = mark.logits != nullptr ? mark.size : std::max<int64_t>(mark.size - 1, 0);
  BackTo(std::min(evaluated_, read));
  replay_until_ = std::min(replay_until_, read);
  blocks_.Truncate(evaluated_);
  logits_ = std::const_pointer_cast<std::vector<float>>(mark.logits);
  logits_lent_ = true;
  logits_position_ = mark.logits != nullptr ? mark.size - 1 : -1;
  hidden_position_ = -1;
}

std::span<const float> Sequence::hidden_row() const {
  if (tokens_.empty() || hidden_position_ != size() - 1) return {};
  return hidden_row_;
}

std::span<const float> Sequence::logits() const {
  // Logits depend on the tokens alone, so they are valid during a replay, too.
  if (tokens_.empty() || logits_position_ != size() - 1) return {};
  return *logits_;
}

}  // namespace trine
