// What a pass is made of: who is in it, with how many tokens, and what is to be done with blocks.
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "runtime/batcher.h"
#include "runtime/flight.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

// A prompt goes through several stages in pieces, so that all of them have work: in about four for
// each stage, but not so small that a piece no longer pays for reading the weights.
constexpr int64_t kPiecesPerStage = 4;
constexpr int64_t kLeastPiece = 64;
// A sequence that is away for longer may not come back at all.
constexpr std::chrono::seconds kForgotten(2);
// One that was given its logits so lately is about to come back with a token.
constexpr std::chrono::milliseconds kDecodes(100);

}  // namespace

// All that wait, in the order in which they are served. Who was cancelled is told so at once.
void Batcher::FindCandidates() {
  std::vector<Candidate>& candidates = candidates_;
  candidates.clear();
  awaits_blocks_ = false;
  for (Request* r : queue_) {
    const bool cancelled = std::any_of(r->left.begin(), r->left.end(),
                                       [](const Sequence* s) { return s->cancelled(); });
    if (cancelled) r->status = absl::CancelledError("the evaluation was cancelled");
    if (!r->status.ok() || r->until == Until::kDrained) continue;
    for (Sequence* s : r->left) {
      if (s->pending() > s->in_flight_ && BringUpToDate(s)) {
        candidates.push_back({r, s, candidates.size()});
      }
    }
  }
  if (candidates.size() < 2) return;
  // Of the request in front the sequence that was served longest ago; then those with the least to
  // do, again by when they were served.
  const auto others = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
    return c.request != candidates[0].request;
  });
  std::iter_swap(
      candidates.begin(),
      std::min_element(candidates.begin(), others, [](const Candidate& a, const Candidate& b) {
        return a.sequence->served_ < b.sequence->served_;
      }));
  std::sort(candidates.begin() + 1, candidates.end(), [](const Candidate& a, const Candidate& b) {
    const auto rank = [](const Candidate& c) {
      return std::tuple(c.sequence->pending() - c.sequence->in_flight_, c.sequence->served_,
                        c.arrival);
    };
    return rank(a) < rank(b);
  });
}

// To the model there is, and to what others have read meanwhile. False while passes of another
// model hold tokens of it: they come home first.
//
// A sequence that replays keeps the blocks it alone holds and takes others in the place of those it
// shared. There is room for that: a block counts once, however many sequences hold it, so all that
// are open hold no more of them than each its own would be, in whatever order they let go; and the
// pool has as many as max_sequences full ones need.
bool Batcher::BringUpToDate(Sequence* sequence) {
  Sequence& s = *sequence;
  if (s.epoch_ != epoch_) {
    if (s.in_flight_ != 0) return false;
    if (Trace* trace = options_.trace.get(); trace != nullptr && s.evaluated_ > 0) {
      trace->Mark(track_, "replay", Trace::Clock::now(), "",
                  {{"tokens", s.evaluated_}, {"placement", static_cast<int64_t>(epoch_)}});
    }
    s.BeginReplay(epoch_);
  }
  s.DistrustUnsettled();
  if (options_.prefix_cache != nullptr) s.AdoptFrom(options_.prefix_cache);
  return options_.keeper == nullptr || !AwaitsBlocks(sequence);
}

bool Batcher::AwaitsBlocks(Sequence* sequence) {
  const auto told = [this] {
    std::lock_guard lock(mutex_);
    arrivals_ = true;
    news_.notify_one();
  };
  if (!sequence->AwaitsBlocks(options_.keeper, told)) return false;
  awaits_blocks_ = true;
  return true;
}

// All that are full when the share has been read, and were not before.
void Batcher::SaveFilled(Batch* batch, Share* share) const {
  const Sequence& s = *share->sequence;
  if (options_.keeper == nullptr || !s.prefix_space_) return;
  const int64_t end = share->begin + share->n_tokens;
  for (int64_t number = share->begin / kBlockPositions; (number + 1) * kBlockPositions <= end;
       ++number) {
    auto bytes = std::make_shared<KvBlockBytes>();
    batch->moves.saves.push_back({s.blocks_.blocks()[static_cast<size_t>(number)], bytes});
    share->filled.push_back({number, std::move(bytes)});
  }
}

void Batcher::KeepFilled(const Share& share) const {
  const Sequence& s = *share.sequence;
  try {
    for (const Filled& filled : share.filled) {
      const int64_t end = (filled.number + 1) * kBlockPositions;
      if (end > s.evaluated_) return;
      options_.keeper->Keep(*s.prefix_space_, {s.tokens_.begin(), s.tokens_.begin() + end},
                            filled.bytes);
    }
  } catch (const std::bad_alloc&) {  // as many as there is memory for
  }
}

// Of one pass, when so many are to be under way.
int64_t Batcher::MostSequences(int64_t passes) {
  const int64_t most = model_->limits().max_sequences;
  if (passes == 1) return most;
  std::vector<const Sequence*>& active = active_;
  active.clear();
  const Clock::time_point not_late = Clock::now() - groups_.patience();
  for (const auto& [sequence, since] : away_) {
    if (since > not_late) active.push_back(sequence);
  }
  for (const Request* r : queue_) active.insert(active.end(), r->left.begin(), r->left.end());
  for (const auto& flight : flights_) {
    for (const Share& share : flight->shares()) active.push_back(share.sequence);
  }
  std::sort(active.begin(), active.end());
  active.erase(std::unique(active.begin(), active.end()), active.end());
  return std::min(most, (static_cast<int64_t>(active.size()) + passes - 1) / passes);
}

int64_t Batcher::MostTokens(int64_t pending) const {
  const int64_t most = model_->limits().max_tokens;
  // Whoever fetches weights for a pass does so once for all of its tokens.
  if (groups_.most() == 1 || pending >= fetch_tokens_) return most;
  const int64_t pieces = kPiecesPerStage * (groups_.most() - 1);
  const int64_t piece = (pending + pieces - 1) / pieces;
  return std::min(most, std::max(kLeastPiece, (piece + 31) / 32 * 32));
}

// Of those that wait, of those that are in a pass, or of those that are away for a moment.
bool Batcher::AnyDecodes() const {
  for (const Candidate& c : candidates_) {
    if (c.sequence->pending() - c.sequence->in_flight_ == 1) return true;
  }
  for (const auto& flight : flights_) {
    for (const Share& share : flight->shares()) {
      if (share.n_tokens == 1) return true;
    }
  }
  const Clock::time_point lately = Clock::now() - kDecodes;
  return std::any_of(away_.begin(), away_.end(),
                     [&](const Away& away) { return away.since > lately; });
}

// Puts at most `most_tokens` of a sequence into the batch. False when its cache has no room.
bool Batcher::TakeShare(const Candidate& candidate, int64_t most_tokens, int64_t rows_left,
                        Batch* batch, Share* share) {
  Sequence& s = *candidate.sequence;
  if (absl::Status room = s.TakeFetched(&batch->moves); !room.ok()) {
    candidate.request->status = std::move(room);
    return false;
  }
  const int64_t begin = s.evaluated() + s.in_flight_, left = s.size() - begin;
  *share = {&s, begin, std::min({left, most_tokens, MostTokens(candidate.request->longest)})};
  if (s.observer_) {
    const int64_t first = std::max(s.first_observed_, s.replay_until_);
    const int64_t unobserved = std::max<int64_t>(0, first - begin);
    share->n_tokens = std::min(share->n_tokens, unobserved + rows_left);
  }
  absl::Status room = s.Reserve(begin, begin + share->n_tokens, &batch->moves);
  if (!room.ok()) {
    candidate.request->status = std::move(room);
    return false;
  }
  int32_t first_token = 0;
  for (const BatchPart& part : batch->parts)
    first_token += static_cast<int32_t>(part.tokens.size());
  share->first_row = batch->output_rows.size();
  for (int64_t i = 0; i < share->n_tokens; ++i) {
    const bool wanted = i + 1 == left || s.Observes(begin + i);
    if (wanted) batch->output_rows.push_back(first_token + static_cast<int32_t>(i));
  }
  share->n_rows = batch->output_rows.size() - share->first_row;
  batch->hidden = batch->hidden || s.hidden_ || s.keeps_hidden_;
  batch->parts.push_back({std::span<const int32_t>(s.tokens_).subspan(
                              static_cast<size_t>(begin), static_cast<size_t>(share->n_tokens)),
                          begin, &s.blocks_});
  SaveFilled(batch, share);
  return true;
}

// When the last of the sequences that are expected back is late, too.
std::optional<Clock::time_point> Batcher::ExpectedBack() {
  const Clock::time_point now = Clock::now();
  std::erase_if(away_, [&](const Away& away) { return now - away.since > kForgotten; });
  std::optional<Clock::time_point> last;
  for (const auto& [sequence, since] : away_) {
    const Clock::time_point late = since + groups_.patience();
    if (late > now) last = std::max(late, last.value_or(late));
  }
  return last;
}

// The first that no pass under way has: devices keep what they have recorded for each.
size_t Batcher::FreePlace() const {
  size_t place = 0;
  const auto taken = [&](const auto& f) { return !f->landed() && f->place() == place; };
  while (std::any_of(flights_.begin(), flights_.end(), taken)) ++place;
  return place;
}

std::shared_ptr<Batcher::Flight> Batcher::IdleFlight() {
  const auto found = std::find_if(idle_flights_.begin(), idle_flights_.end(),
                                  [](const auto& flight) { return flight.use_count() == 1; });
  std::shared_ptr<Flight> flight;
  if (found != idle_flights_.end()) {
    flight = std::move(*found);
    idle_flights_.erase(found);
  } else {
    flight = std::make_shared<Flight>(this, *model_, log_, keep_rows_);
  }
  flight->Begin(model_);
  return flight;
}

std::shared_ptr<Batcher::Flight> Batcher::FormFlight() {
  FindCandidates();
  std::vector<Candidate>& candidates = candidates_;
  if (candidates.empty() && awaits_blocks_) next_look_ = Clock::now() + kLookout;
  if (candidates.empty()) return nullptr;
  // Pieces of a prompt need not wait for the host: stages have one in store.
  const bool prompts = std::any_of(candidates.begin(), candidates.end(), [](const Candidate& c) {
    return c.sequence->pending() - c.sequence->in_flight_ > 1;
  });
  const int64_t passes = prompts ? groups_.most() : groups_.count();
  if (UnderWay() >= passes) return nullptr;
  const auto back = ExpectedBack();
  const SegmentLimits& limits = model_->limits();
  const int64_t most_sequences = MostSequences(passes);
  const bool waits = !prompts || (options_.mixed_tokens > 0 && passes == 1);
  if (waits && back && static_cast<int64_t>(candidates.size()) < most_sequences) {
    next_look_ = back;
    return nullptr;
  }
  int64_t tokens_left = limits.max_tokens;
  if (options_.mixed_tokens > 0 && prompts && AnyDecodes()) {
    const int64_t sequences = std::min(static_cast<int64_t>(candidates.size()), most_sequences);
    tokens_left = std::min(tokens_left, std::max(options_.mixed_tokens, sequences));
  }
  int64_t rows_left = limits.max_output_rows;
  // The one in front leaves a token to each of the others that can come along.
  const int64_t others = std::min({static_cast<int64_t>(candidates.size()) - 1, most_sequences - 1,
                                   tokens_left - 1, rows_left - 1});
  // Where all come along, each with a token, their order says nothing: always the same is foreseen.
  const auto all = static_cast<int64_t>(candidates.size());
  if (!prompts && all <= std::min({most_sequences, tokens_left, rows_left})) {
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return std::less<>()(a.sequence, b.sequence);
    });
  }
  std::shared_ptr<Flight> flight = IdleFlight();
  Batch& batch = batch_;
  batch.Clear();
  for (const Candidate& candidate : candidates) {
    if (static_cast<int64_t>(batch.parts.size()) == most_sequences) break;
    if (tokens_left == 0 || rows_left == 0) break;
    if (!candidate.request->status.ok()) continue;
    const int64_t reserved = batch.parts.empty() ? others : 0;
    Share share;
    if (!TakeShare(candidate, tokens_left - reserved, rows_left - reserved, &batch, &share)) {
      continue;
    }
    tokens_left -= share.n_tokens;
    rows_left -= static_cast<int64_t>(share.n_rows);
    const int64_t replayed = candidate.sequence->replay_until_ - share.begin;
    flight->Add(share, std::clamp<int64_t>(replayed, 0, share.n_tokens));
  }
  if (batch.parts.empty()) return nullptr;
  // A pass has at least one row of output, wanted or not.
  if (batch.output_rows.empty()) batch.output_rows.push_back(0);
  const bool foreseen = flight->Prepare(batch, FreePlace(), ++passes_, &ahead_);
  batch.moves.Clear();  // which may hold much
  ++times_.passes;
  times_.passes_ahead += foreseen ? 1 : 0;
  for (const Share& share : flight->shares()) {
    share.sequence->in_flight_ += share.n_tokens;
    share.sequence->served_ = passes_;
  }
  return flight;
}

// The batch of the pass behind one in which all decode. False where it can't be said.
bool Batcher::Foresee(const Flight& flight) {
  next_batch_.Clear();
  for (const Share& share : flight.shares()) {
    Sequence& s = *share.sequence;
    const int64_t position = share.begin + 1;
    if (share.n_tokens != 1 || position != s.size() || !s.HasRoomAhead(position)) return false;
    next_batch_.output_rows.push_back(static_cast<int32_t>(next_batch_.parts.size()));
    next_batch_.parts.push_back({std::span(&PassesAhead::kUnknown, 1), position, &s.blocks_});
    next_batch_.hidden = next_batch_.hidden || s.hidden_ || s.keeps_hidden_;
  }
  return !next_batch_.parts.empty();
}

// While devices are at work. Sequences in passes under way are the leader's until it has brought
// them home, so it needs no lock for them.
void Batcher::MakeAhead(std::unique_lock<std::mutex>& lock) {
  for (size_t i = 0; i < flights_.size(); ++i) {
    if (flights_[i]->landed() || flights_[i]->foreseen()) continue;
    const std::shared_ptr<Flight> flight = flights_[i];
    flight->set_foreseen();
    if (!Foresee(*flight)) continue;
    Trace* const trace = options_.trace.get();
    lock.unlock();
    const auto begin = Trace::Clock::now();
    try {
      ahead_.Make(*model_, next_batch_);
    } catch (const std::bad_alloc&) {
      // It is made when it is due.
    }
    const auto end = Trace::Clock::now();
    if (trace != nullptr) {
      trace->Add(track_, "prepare ahead", begin, end,
                 {{"behind pass", static_cast<int64_t>(flight->number())},
                  {"sequences", static_cast<int64_t>(next_batch_.parts.size())}});
    }
    lock.lock();
    times_.ahead_ns += Nanoseconds(end - begin);
  }
}

}  // namespace trine
