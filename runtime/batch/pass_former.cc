#include "runtime/batch/pass_former.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <new>
#include <tuple>

#include "absl/cleanup/cleanup.h"

namespace trine {
namespace {

// A prompt goes through several stages in pieces, so that every stage has work: about four pieces
// for each stage, but no piece so small that reading the weights for it does not pay.
constexpr int64_t kPiecesPerStage = 4;
constexpr int64_t kLeastPiece = 64;

}  // namespace

// Reserves memory for the most sequences at once: timing decides how many sequences are in a pass,
// and the first pass of a size must not allocate either.
void PassFormer::Use(const StagedModel& on) {
  fetch_tokens_ = std::numeric_limits<int64_t>::max();
  for (const RouteInfo& route : on.model->routes()) {
    if (route.kind != RouteKind::kStreamed && route.kind != RouteKind::kFetched) continue;
    fetch_tokens_ = std::min(fetch_tokens_, route.first_tokens);
  }
  // Two more than can be in flight: stages may still hold passes that have finished.
  const size_t most = on.model->pass_slots();
  idle_.clear();
  idle_.reserve(most + 2);
  while (idle_.size() < most + 2) idle_.push_back(std::make_shared<PassJob>(shared_, on));
  ahead_.Reset(*on.model, most);
  const auto sequences = static_cast<size_t>(on.model->limits().max_sequences);
  passes_.reserve(most + sequences);  // and finished ones whose owners are not in a call
  for (Batch* batch : {&batch_, &next_batch_}) {
    batch->parts.reserve(sequences);
    batch->output_rows.reserve(sequences);
  }
  candidates_.reserve(sequences);
  deliveries_.reserve(sequences);
  failures_.reserve(sequences);
}

PassDemand PassFormer::FindCandidates(std::span<BatchRequest* const> queue, uint64_t epoch) {
  PassDemand demand;
  candidates_.clear();
  for (BatchRequest* r : queue) {
    const bool cancelled = std::any_of(r->left.begin(), r->left.end(),
                                       [](Sequence::Evaluation s) { return s->cancelled(); });
    if (cancelled) r->status = absl::CancelledError("the evaluation was cancelled");
    if (!r->status.ok() || r->until == BatchRequest::Until::kDrained) continue;
    for (Sequence::Evaluation s : r->left) {
      if (s.left() <= 0 || !IsReady(s, epoch, &demand.awaits_blocks)) continue;
      candidates_.push_back({r, s, candidates_.size()});
      (s.left() == 1 ? demand.decodes : demand.prompts) = true;
    }
  }
  demand.sequences = static_cast<int64_t>(candidates_.size());
  if (demand.sequences > 1) SortCandidates();
  return demand;
}

// Brings a sequence to the current epoch, and adopts blocks that others have filled. Returns false
// while passes of another epoch hold its tokens, or blocks are being fetched for it.
//
// A sequence that replays keeps its own blocks and takes new blocks in place of shared blocks.
// There is room for that. The pool has blocks for max_sequences full sequences, and the blocks that
// all sequences hold together, with a shared block counted once, are never more.
bool PassFormer::IsReady(Sequence::Evaluation s, uint64_t epoch, bool* awaits_blocks) {
  const BatcherOptions& options = shared_->options;
  if (s.epoch() != epoch) {
    if (s.in_flight() != 0) return false;
    if (options.trace != nullptr && s->evaluated() > 0) {
      options.trace->Mark(shared_->track, "replay", Trace::Clock::now(), "",
                          {{"tokens", s->evaluated()}, {"placement", static_cast<int64_t>(epoch)}});
    }
    s.BeginReplay(epoch);
  }
  s.CatchUp(options.prefix_cache);
  if (options.block_keeper == nullptr) return true;
  const auto told = [shared = shared_] {
    std::lock_guard lock(shared->mutex);
    shared->arrivals = true;
    shared->news.notify_one();
  };
  if (!s.AwaitsBlocks(options.block_keeper, told)) return true;
  *awaits_blocks = true;
  return false;
}

// The first candidate is the sequence of the oldest request that was served longest ago. All others
// follow by their number of pending tokens, the fewest first; among equals, the sequence that was
// served longest ago comes first.
void PassFormer::SortCandidates() {
  const auto begin = candidates_.begin(), end = candidates_.end();
  const auto others =
      std::find_if(begin, end, [&](const Candidate& c) { return c.request != begin->request; });
  std::iter_swap(begin, std::min_element(begin, others, [](const Candidate& a, const Candidate& b) {
                   return a.sequence.served() < b.sequence.served();
                 }));
  std::sort(begin + 1, end, [](const Candidate& a, const Candidate& b) {
    const auto rank = [](const Candidate& c) {
      return std::tuple(c.sequence.left(), c.sequence.served(), c.arrival);
    };
    return rank(a) < rank(b);
  });
}

// Returns the most tokens that a pass takes of a sequence whose request began with `pending`
// pending tokens.
int64_t PassFormer::Piece(const StagedModel& on, const PassSize& size, int64_t pending) const {
  const int64_t most = on.model->limits().max_tokens;
  // A device that fetches weights for a pass fetches them once for all of its tokens.
  if (size.passes == 1 || pending >= fetch_tokens_) return most;
  const int64_t pieces = kPiecesPerStage * (size.passes - 1);
  const int64_t piece = (pending + pieces - 1) / pieces;
  return std::min(most, std::max(kLeastPiece, (piece + 31) / 32 * 32));
}

// Returns the first pass slot that no pass in flight uses. Low slots are reused because devices
// keep what they have recorded for each slot.
size_t PassFormer::FreeSlot() const {
  size_t slot = 0;
  const auto taken = [&](const auto& p) { return !p->finished() && p->slot() == slot; };
  while (std::any_of(passes_.begin(), passes_.end(), taken)) ++slot;
  return slot;
}

std::shared_ptr<PassJob> PassFormer::IdlePass(const StagedModel& on) {
  const auto found = std::find_if(idle_.begin(), idle_.end(),
                                  [](const auto& pass) { return pass.use_count() == 1; });
  std::shared_ptr<PassJob> pass;
  if (found != idle_.end()) {
    pass = std::move(*found);
    idle_.erase(found);
  } else {
    pass = std::make_shared<PassJob>(shared_, on);
  }
  pass->Begin(on.model);
  return pass;
}

std::shared_ptr<PassJob> PassFormer::Form(const StagedModel& on, const PassSize& size) {
  passes_.reserve(passes_.size() + 1);
  std::shared_ptr<PassJob> pass = IdlePass(on);
  batch_.Clear();
  TakeShares(on, size, pass.get());
  if (batch_.parts.empty()) return nullptr;
  // A pass has at least one output row, even if nothing reads it.
  if (batch_.output_rows.empty()) batch_.output_rows.push_back(0);
  const bool foreseen = pass->Prepare(batch_, FreeSlot(), ++formed_, &ahead_);
  batch_.moves.Clear();  // may hold much memory
  ++shared_->times.passes;
  shared_->times.passes_ahead += foreseen ? 1 : 0;
  for (const PassShare& share : pass->shares()) share.sequence.Begin(share, formed_);
  passes_.push_back(pass);
  return pass;
}

void PassFormer::TakeShares(const StagedModel& on, const PassSize& size, PassJob* pass) {
  const auto all = static_cast<int64_t>(candidates_.size());
  int64_t tokens_left = size.tokens, rows_left = on.model->limits().max_output_rows;
  // The first sequence leaves one token to each of the others that fit.
  int64_t reserved = std::min({all, size.sequences, tokens_left, rows_left}) - 1;
  // If all sequences decode and fit, a fixed order lets the pass match the pass prepared ahead.
  const bool decode = std::all_of(candidates_.begin(), candidates_.end(),
                                  [](const Candidate& c) { return c.sequence.left() == 1; });
  if (decode && reserved == all - 1) {
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return std::less<>()(a.sequence.get(), b.sequence.get());
    });
  }
  for (const Candidate& c : candidates_) {
    if (static_cast<int64_t>(batch_.parts.size()) == size.sequences) break;
    if (tokens_left == 0 || rows_left == 0) break;
    if (!c.request->status.ok()) continue;
    const int64_t most = std::min(tokens_left - reserved, Piece(on, size, c.request->longest));
    auto share = c.sequence.Take(most, rows_left - reserved,
                                 shared_->options.block_keeper != nullptr, &batch_);
    if (!share.ok()) {
      c.request->status = share.status();
      continue;
    }
    reserved = 0;
    tokens_left -= share->n_tokens;
    rows_left -= static_cast<int64_t>(share->n_rows);
    pass->Add(*std::move(share));
  }
}

// Predicts, into next_batch_, the batch that follows a pass in which all sequences decode. Returns
// false if it can't.
bool PassFormer::Foresee(const PassJob& pass) {
  next_batch_.Clear();
  for (const PassShare& share : pass.shares()) {
    if (!share.sequence.Foresee(share, &next_batch_)) return false;
  }
  return !next_batch_.parts.empty();
}

// Needs no lock for sequences in flight: they belong to the leader until it has delivered their
// rows.
void PassFormer::MakeAhead(std::unique_lock<std::mutex>& lock, const Model& model) {
  for (size_t i = 0; i < passes_.size(); ++i) {
    if (passes_[i]->finished() || passes_[i]->foreseen()) continue;
    const std::shared_ptr<PassJob> pass = passes_[i];
    pass->set_foreseen();
    if (!Foresee(*pass)) continue;
    lock.unlock();
    const auto begin = Trace::Clock::now();
    try {
      ahead_.Make(model, next_batch_);
    } catch (const std::bad_alloc&) {
      // The pass is prepared when it is due.
    }
    const uint64_t took_ns =
        shared_->Worked("prepare ahead", begin,
                        {{"behind pass", static_cast<int64_t>(pass->number())},
                         {"sequences", static_cast<int64_t>(next_batch_.parts.size())}});
    lock.lock();
    shared_->times.ahead_ns += took_ns;
  }
}

int64_t PassFormer::in_flight() const {
  return std::count_if(passes_.begin(), passes_.end(),
                       [](const auto& p) { return !p->finished(); });
}

bool PassFormer::AnyInFlight(std::span<const Sequence::Evaluation> sequences) const {
  const auto is_one = [&](const PassShare& share) {
    return std::count(sequences.begin(), sequences.end(), share.sequence) != 0;
  };
  return std::any_of(passes_.begin(), passes_.end(), [&](const auto& p) {
    return !p->finished() && std::any_of(p->shares().begin(), p->shares().end(), is_one);
  });
}

bool PassFormer::any_fresh() const {
  return std::any_of(passes_.begin(), passes_.end(), [](const auto& p) { return p->fresh(); });
}

bool PassFormer::Collect(const StageLog* log) {
  deliveries_.clear();
  for (const auto& pass : passes_) {
    if (!pass->finished()) continue;
    pass->Look();
    std::erase_if(pass->shares(), [&](const PassShare& share) {
      if (pass->ok() && !share.sequence.waiting()) return false;
      if (pass->ok()) deliveries_.emplace_back(pass, share);
      if (!pass->ok()) share.sequence.End(share);
      return true;
    });
  }
  const auto empty = [](const auto& p) { return p->finished() && p->shares().empty(); };
  for (const auto& pass : passes_) {
    const bool again = pass->ok() && pass->is_of(log);
    if (empty(pass) && again && idle_.size() < idle_.capacity()) idle_.push_back(pass);
  }
  std::erase_if(passes_, empty);
  return !deliveries_.empty();
}

const PassFormer::Failures& PassFormer::Deliver(std::unique_lock<std::mutex>& lock,
                                                uint64_t epoch) {
  const BatcherOptions& options = shared_->options;
  const absl::Cleanup forget = [this] { deliveries_.clear(); };
  failures_.clear();
  failures_.reserve(deliveries_.size());
  // No lock is needed for the sequences: their owners wait, so nothing else changes them.
  lock.unlock();
  const auto begin = Trace::Clock::now();
  for (const auto& [pass, share] : deliveries_) {
    // An observer that throws makes only its own request fail.
    absl::Status status = Quietly([&] {
      share.sequence.Deliver(share, pass->rows());
      return absl::OkStatus();
    });
    share.sequence.End(share);
    if (status.ok() && !share.filled.empty()) share.sequence.Keep(share, options.block_keeper);
    if (!status.ok()) failures_.emplace_back(share.sequence, std::move(status));
  }
  const uint64_t took_ns =
      shared_->Worked("deliver", begin, {{"sequences", static_cast<int64_t>(deliveries_.size())}});
  lock.lock();
  shared_->times.deliver_ns += took_ns;
  for (const auto& [pass, share] : deliveries_) {
    const Sequence::Evaluation s = share.sequence;
    s.set_finished_at(pass->finished_at());
    // The KV cache of another epoch is gone.
    if (options.prefix_cache != nullptr && s.epoch() == epoch) s.OfferTo(options.prefix_cache);
  }
  return failures_;
}

void PassFormer::Forget(std::span<const Sequence::Evaluation> sequences) {
  for (const auto& pass : passes_) {
    std::erase_if(pass->shares(), [&](const PassShare& share) {
      return std::count(sequences.begin(), sequences.end(), share.sequence) != 0;
    });
  }
  for (Sequence::Evaluation s : sequences) s.EndAll();
}

void PassFormer::ForgetAll() {
  for (const auto& pass : passes_) {
    for (const PassShare& share : pass->shares()) share.sequence.End(share);
  }
  passes_.clear();
}

}  // namespace trine
