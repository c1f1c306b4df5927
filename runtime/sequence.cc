#include "runtime/sequence.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/model/segment_graph.h"

namespace trine {
namespace {

// Tokens for which there is memory from the first one on.
constexpr size_t kLeastRoom = 256;

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
  // The last token that stays is evaluated again: its logits are what one goes on from.
  BackTo(std::min(evaluated_, std::max<int64_t>(n - 1, 0)));
  replay_until_ = std::min(replay_until_, std::max<int64_t>(n - 1, 0));
  blocks_.Truncate(evaluated_);
  logits_position_ = hidden_position_ = -1;
}

absl::Status Sequence::Erase(int64_t begin, int64_t end) {
  if (begin < 0 || begin > end || end > size()) {
    return absl::InvalidArgumentError(absl::StrCat("there are no tokens ", begin, " to ", end,
                                                   " to erase: the sequence has ", size()));
  }
  if (begin == end) return absl::OkStatus();
  DropFetch();
  tokens_.erase(tokens_.begin() + begin, tokens_.begin() + end);
  // As in Truncate, the last one is always evaluated again.
  BackTo(std::min({evaluated_, begin, std::max<int64_t>(size() - 1, 0)}));
  replay_until_ = std::min({replay_until_, begin, std::max<int64_t>(size() - 1, 0)});
  blocks_.Truncate(size());
  logits_position_ = hidden_position_ = -1;
  return absl::OkStatus();
}

// What comes next is written behind the first `evaluated` positions.
void Sequence::BackTo(int64_t evaluated) {
  evaluated_ = evaluated;
  const int64_t kept = (evaluated_ + kBlockPositions - 1) / kBlockPositions;
  blocks_.LetGoOfShared(static_cast<size_t>(kept));
  offered_ = std::min(offered_, InFullBlocks(evaluated_));
}

absl::Status Sequence::Reserve(int64_t begin, int64_t end, KvMoves* moves) {
  if (absl::Status s = blocks_.Reserve(end); !s.ok()) return s;
  // Only the first can be anyone else's: those behind it were let go of.
  const auto number = static_cast<size_t>(begin / kBlockPositions);
  if (!blocks_.IsShared(number)) return absl::OkStatus();
  const auto replaced = blocks_.Replace(number);
  if (!replaced.ok()) return replaced.status();
  // Whoever holds it may let go of it at once: passes that write to it come after this one.
  if (begin % kBlockPositions == 0) return absl::OkStatus();
  unsettled_ = std::min(unsettled_.value_or(begin), InFullBlocks(begin));
  moves->copies.push_back({*replaced, blocks_.blocks()[number]});
  return absl::OkStatus();
}

bool Sequence::HasRoomAhead(int64_t position) {
  if (position >= max_context_) return false;
  const auto number = static_cast<size_t>(position / kBlockPositions);
  if (number < blocks_.blocks().size()) return !blocks_.IsShared(number);
  // It may never get there: nobody shall want for the block meanwhile.
  const KvBlockPool& pool = *blocks_.pool();
  return pool.free() > pool.total() / 4 && blocks_.Reserve(position + 1).ok();
}

void Sequence::DistrustUnsettled() {
  if (!unsettled_ || in_flight_ != 0) return;
  const int64_t sound = *std::exchange(unsettled_, std::nullopt);
  if (sound >= evaluated_) return;
  replay_until_ = std::max(replay_until_, evaluated_);
  BackTo(sound);
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
  // Without logits the last token is evaluated again, as when the sequence is truncated.
  const int64_t read = mark.logits != nullptr ? mark.size : std::max<int64_t>(mark.size - 1, 0);
  BackTo(std::min(evaluated_, read));
  replay_until_ = std::min(replay_until_, read);
  blocks_.Truncate(evaluated_);
  logits_ = std::const_pointer_cast<std::vector<float>>(mark.logits);
  logits_lent_ = true;
  logits_position_ = mark.logits != nullptr ? mark.size - 1 : -1;
  hidden_position_ = -1;
}

void Sequence::SetLogits(std::span<const float> row, int64_t position) {
  if (logits_ == nullptr || logits_lent_) {
    logits_ = std::make_shared<std::vector<float>>(row.begin(), row.end());
    logits_lent_ = false;
  } else {
    logits_->assign(row.begin(), row.end());
  }
  logits_position_ = position;
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

bool Sequence::AwaitsBlocks(BlockKeeper* keeper, const std::function<void()>& told) {
  if (fetch_ != nullptr) return !fetch_->done();
  if (!prefix_space_ || observer_ || in_flight_ != 0) return false;
  if (fetched_for_ == size() && fetched_in_ == epoch_) return false;
  const int64_t most = InFullBlocks(size() - 1);  // the last token gives the logits
  if (most <= evaluated_) return false;
  fetched_for_ = size();
  fetched_in_ = epoch_;
  fetch_ = keeper->Begin(*prefix_space_, {tokens_.begin(), tokens_.begin() + most},
                         evaluated_ / kBlockPositions, told);
  return true;
}

absl::Status Sequence::TakeFetched(KvMoves* moves) {
  if (fetch_ == nullptr || in_flight_ != 0) return absl::OkStatus();
  const std::shared_ptr<BlockKeeper::Fetch> fetch = std::exchange(fetch_, nullptr);
  const int64_t begin = evaluated_;
  int64_t number = fetch->first();
  for (const auto& bytes : fetch->blocks()) {
    const int64_t end = ++number * kBlockPositions;
    if (end <= evaluated_) continue;  // others have read it meanwhile
    if (end - kBlockPositions > evaluated_) break;
    KvMoves none;  // what is in the block is written over
    if (absl::Status s = Reserve(end - kBlockPositions, end, &none); !s.ok()) return s;
    unsettled_ = std::min(unsettled_.value_or(end), end - kBlockPositions);
    moves->loads.push_back({blocks_.blocks()[static_cast<size_t>(number - 1)], bytes});
    evaluated_ = end;
  }
  cached_tokens_ += std::max<int64_t>(0, evaluated_ - std::max(begin, replay_until_));
  return absl::OkStatus();
}

void Sequence::OfferTo(PrefixCache* cache) {
  const int64_t full = InFullBlocks(evaluated_);
  if (!prefix_space_ || in_flight_ != 0 || full <= offered_) return;
  cache->Offer(*prefix_space_, std::span(tokens_).first(static_cast<size_t>(full)), &blocks_);
  offered_ = full;
}

std::span<const float> Sequence::hidden_row() const {
  if (tokens_.empty() || hidden_position_ != size() - 1) return {};
  return hidden_row_;
}

std::span<const float> Sequence::logits() const {
  // They are a function of the tokens: also while those are read again.
  if (tokens_.empty() || logits_position_ != size() - 1) return {};
  return *logits_;
}

}  // namespace trine
