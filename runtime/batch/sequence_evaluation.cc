#include "runtime/batch/sequence_evaluation.h"

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/batch/passes_ahead.h"
#include "runtime/model/arch/segment_graph.h"

namespace trine {

void Sequence::Evaluation::BeginReplay(uint64_t epoch) const {
  s_->replay_until_ = std::max(s_->replay_until_, s_->evaluated_);
  s_->DropFetch();
  s_->BackTo(0);
  s_->epoch_ = epoch;
}

void Sequence::Evaluation::CatchUp(PrefixCache* cache) const {
  if (s_->in_flight_ != 0) return;
  DistrustUnsettled();
  if (cache != nullptr) AdoptFrom(cache);
}

// Goes back to the blocks that do not depend on moves of a pass. Called when the pass that should
// have made the moves has failed.
void Sequence::Evaluation::DistrustUnsettled() const {
  Sequence& s = *s_;
  if (!s.unsettled_) return;
  const int64_t sound = *std::exchange(s.unsettled_, std::nullopt);
  if (sound >= s.evaluated_) return;
  s.replay_until_ = std::max(s.replay_until_, s.evaluated_);
  s.BackTo(sound);
}

void Sequence::Evaluation::AdoptFrom(PrefixCache* cache) const {
  Sequence& s = *s_;
  if (!s.prefix_space_ || s.observer_) return;
  const int64_t most = InFullBlocks(s.size() - 1);  // the last token gives the logits
  if (most <= s.evaluated_) return;
  const int64_t found =
      cache->Adopt(*s.prefix_space_, std::span(s.tokens_).first(static_cast<size_t>(most)),
                   s.evaluated_, s.looked_for_ == s.size(), &s.blocks_);
  s.looked_for_ = s.size();
  if (found == s.evaluated_) return;
  s.cached_tokens_ += std::max<int64_t>(0, found - std::max(s.evaluated_, s.replay_until_));
  s.evaluated_ = s.offered_ = found;
}

void Sequence::Evaluation::OfferTo(PrefixCache* cache) const {
  Sequence& s = *s_;
  const int64_t full = InFullBlocks(s.evaluated_);
  if (!s.prefix_space_ || s.in_flight_ != 0 || full <= s.offered_) return;
  cache->Offer(*s.prefix_space_, std::span(s.tokens_).first(static_cast<size_t>(full)), &s.blocks_);
  s.offered_ = full;
}

bool Sequence::Evaluation::AwaitsBlocks(BlockKeeper* keeper,
                                        const std::function<void()>& told) const {
  Sequence& s = *s_;
  if (s.fetch_ != nullptr) return !s.fetch_->done();
  if (!s.prefix_space_ || s.observer_ || s.in_flight_ != 0) return false;
  if (s.fetched_for_ == s.size() && s.fetched_in_ == s.epoch_) return false;
  const int64_t most = InFullBlocks(s.size() - 1);  // the last token gives the logits
  if (most <= s.evaluated_) return false;
  s.fetched_for_ = s.size();
  s.fetched_in_ = s.epoch_;
  s.fetch_ = keeper->Begin(*s.prefix_space_, {s.tokens_.begin(), s.tokens_.begin() + most},
                           s.evaluated_ / kBlockPositions, told);
  return true;
}

// Adds the fetched blocks to the sequence. The pass that makes `moves` writes their contents.
absl::Status Sequence::Evaluation::TakeFetched(KvMoves* moves) const {
  Sequence& s = *s_;
  if (s.fetch_ == nullptr || s.in_flight_ != 0) return absl::OkStatus();
  const std::shared_ptr<BlockKeeper::Fetch> fetch = std::exchange(s.fetch_, nullptr);
  const int64_t begin = s.evaluated_;
  int64_t number = fetch->first();
  for (const auto& bytes : fetch->blocks()) {
    const int64_t end = ++number * kBlockPositions;
    if (end <= s.evaluated_) continue;  // adopted from the prefix cache during the fetch
    if (end - kBlockPositions > s.evaluated_) break;
    KvMoves none;  // not copied: the block is overwritten
    if (absl::Status room = Reserve(end - kBlockPositions, end, &none); !room.ok()) return room;
    s.unsettled_ = std::min(s.unsettled_.value_or(end), end - kBlockPositions);
    moves->loads.push_back({s.blocks_.blocks()[static_cast<size_t>(number - 1)], bytes});
    s.evaluated_ = end;
  }
  s.cached_tokens_ += std::max<int64_t>(0, s.evaluated_ - std::max(begin, s.replay_until_));
  return absl::OkStatus();
}

// Reserves blocks for positions [begin, end) that no other sequence shares. Adds to `moves` the
// copy of a shared block's contents that this may need.
absl::Status Sequence::Evaluation::Reserve(int64_t begin, int64_t end, KvMoves* moves) const {
  Sequence& s = *s_;
  if (absl::Status room = s.blocks_.Reserve(end); !room.ok()) return room;
  // Only the first block can be shared: BackTo has let go of later shared blocks.
  const auto number = static_cast<size_t>(begin / kBlockPositions);
  if (!s.blocks_.IsShared(number)) return absl::OkStatus();
  const auto replaced = s.blocks_.Replace(number);
  if (!replaced.ok()) return replaced.status();
  // The other holders may let go of the replaced block before this pass copies it: passes that
  // write to it come after this pass.
  if (begin % kBlockPositions == 0) return absl::OkStatus();
  s.unsettled_ = std::min(s.unsettled_.value_or(begin), InFullBlocks(begin));
  moves->copies.push_back({*replaced, s.blocks_.blocks()[number]});
  return absl::OkStatus();
}

absl::StatusOr<PassShare> Sequence::Evaluation::Take(int64_t most_tokens, int64_t most_rows,
                                                     bool save_blocks, Batch* batch) const {
  Sequence& s = *s_;
  if (absl::Status room = TakeFetched(&batch->moves); !room.ok()) return room;
  PassShare share{.sequence = *this, .begin = s.evaluated_ + s.in_flight_};
  const int64_t begin = share.begin, left = s.size() - begin;
  share.n_tokens = std::min(left, most_tokens);
  if (s.observer_) {
    const int64_t first = std::max(s.first_observed_, s.replay_until_);
    const int64_t unobserved = std::max<int64_t>(0, first - begin);
    share.n_tokens = std::min(share.n_tokens, unobserved + most_rows);
  }
  if (absl::Status room = Reserve(begin, begin + share.n_tokens, &batch->moves); !room.ok()) {
    return room;
  }
  share.replayed = std::clamp<int64_t>(s.replay_until_ - begin, 0, share.n_tokens);
  int32_t first_token = 0;
  for (const BatchPart& part : batch->parts)
    first_token += static_cast<int32_t>(part.tokens.size());
  share.first_row = batch->output_rows.size();
  for (int64_t i = 0; i < share.n_tokens; ++i) {
    const bool wanted = i + 1 == left || s.Observes(begin + i);
    if (wanted) batch->output_rows.push_back(first_token + static_cast<int32_t>(i));
  }
  share.n_rows = batch->output_rows.size() - share.first_row;
  batch->hidden = batch->hidden || s.hidden_ || s.keeps_hidden_;
  batch->parts.push_back({std::span<const int32_t>(s.tokens_).subspan(
                              static_cast<size_t>(begin), static_cast<size_t>(share.n_tokens)),
                          begin, &s.blocks_, share.replayed});
  if (save_blocks && s.prefix_space_) SaveFilled(batch, &share);
  return share;
}

void Sequence::Evaluation::SaveFilled(Batch* batch, PassShare* share) const {
  const int64_t end = share->begin + share->n_tokens;
  for (int64_t number = share->begin / kBlockPositions; (number + 1) * kBlockPositions <= end;
       ++number) {
    auto bytes = std::make_shared<KvBlockBytes>();
    batch->moves.saves.push_back({s_->blocks_.blocks()[static_cast<size_t>(number)], bytes});
    share->filled.push_back({number, std::move(bytes)});
  }
}

void Sequence::Evaluation::Keep(const PassShare& share, BlockKeeper* keeper) const {
  try {
    for (const PassShare::Filled& filled : share.filled) {
      const int64_t end = (filled.number + 1) * kBlockPositions;
      if (end > s_->evaluated_) return;
      keeper->Keep(*s_->prefix_space_, {s_->tokens_.begin(), s_->tokens_.begin() + end},
                   filled.bytes);
    }
  } catch (const std::bad_alloc&) {  // the rest is not kept
  }
}

bool Sequence::Evaluation::Foresee(const PassShare& share, Batch* batch) const {
  Sequence& s = *s_;
  const int64_t position = share.begin + 1;
  if (share.n_tokens != 1 || position != s.size() || !HasRoomAhead(position)) return false;
  batch->output_rows.push_back(static_cast<int32_t>(batch->parts.size()));
  batch->parts.push_back({std::span(&PassesAhead::kUnknown, 1), position, &s.blocks_});
  batch->hidden = batch->hidden || s.hidden_ || s.keeps_hidden_;
  return true;
}

// Returns whether the token at `position`, after the tokens in flight, has a block that no other
// sequence shares. Reserves a block if enough are free.
bool Sequence::Evaluation::HasRoomAhead(int64_t position) const {
  Sequence& s = *s_;
  if (position >= s.max_context_) return false;
  const auto number = static_cast<size_t>(position / kBlockPositions);
  if (number < s.blocks_.blocks().size()) return !s.blocks_.IsShared(number);
  // The sequence may never reach this position, so it takes a block only while many are free.
  const KvBlockPool& pool = *s.blocks_.pool();
  return pool.free() > pool.total() / 4 && s.blocks_.Reserve(position + 1).ok();
}

void Sequence::Evaluation::Begin(const PassShare& share, uint64_t pass) const {
  s_->in_flight_ += share.n_tokens;
  s_->served_ = pass;
}

void Sequence::Evaluation::End(const PassShare& share) const { s_->in_flight_ -= share.n_tokens; }

void Sequence::Evaluation::Deliver(const PassShare& share, const PassRows& rows) const {
  Sequence& s = *s_;
  if (share.begin != s.evaluated_) return;  // earlier tokens were lost: all are evaluated again
  s.unsettled_.reset();                     // the pass has made the moves
  const int64_t end = share.begin + share.n_tokens;
  const int64_t first_position = end - static_cast<int64_t>(share.n_rows);
  for (size_t i = 0; i < share.n_rows; ++i) {
    const int64_t position = first_position + static_cast<int64_t>(i);
    const auto row = rows.row(share.first_row + i, s.hidden_);
    if (s.Observes(position)) s.observer_(position, row);
    if (position + 1 != s.size()) continue;
    SetLogits(row, position);
    if (!s.keeps_hidden_) continue;
    const auto hidden = rows.row(share.first_row + i, true);
    s.hidden_row_.assign(hidden.begin(), hidden.end());
    s.hidden_position_ = position;
  }
  s.evaluated_ = end;
  if (s.progress_ && end > s.replay_until_) s.progress_(end, s.size());
}

void Sequence::Evaluation::SetLogits(std::span<const float> row, int64_t position) const {
  Sequence& s = *s_;
  if (s.logits_ == nullptr || s.logits_lent_) {
    s.logits_ = std::make_shared<std::vector<float>>(row.begin(), row.end());
    s.logits_lent_ = false;
  } else {
    s.logits_->assign(row.begin(), row.end());
  }
  s.logits_position_ = position;
}

}  // namespace trine
