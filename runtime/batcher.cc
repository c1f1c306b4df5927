#include "runtime/batcher.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace trine {

absl::Status Batcher::Evaluate(std::span<Sequence* const> sequences) {
  Request request;
  for (Sequence* s : sequences) {
    if (s->pending() > 0) request.left.push_back(s);
  }
  if (request.left.empty()) return absl::OkStatus();
  std::unique_lock<std::mutex> lock(mutex_);
  queue_.push_back(&request);
  // Also when memory runs out in mid-pass: no one may find a request whose caller has gone, or wait
  // for a leader that has.
  bool leads = false;
  const absl::Cleanup leave = [&] {
    if (!lock.owns_lock()) lock.lock();
    std::erase(queue_, &request);
    if (leads) leading_ = false;
    changed_.notify_all();
  };
  while (!request.done) {
    if (leading_ && !leads) {
      changed_.wait(lock);
      continue;
    }
    leading_ = leads = true;
    Step(lock);
  }
  return request.status;
}

// All that wait, in the order in which they are served. Who was cancelled is told so at once.
std::vector<Batcher::Share> Batcher::Candidates() {
  std::vector<Share> candidates;
  for (Request* r : queue_) {
    const bool cancelled = std::any_of(r->left.begin(), r->left.end(),
                                       [](const Sequence* s) { return s->cancelled(); });
    if (cancelled) r->status = absl::CancelledError("the evaluation was cancelled");
    if (!r->status.ok()) continue;
    for (Sequence* s : r->left) candidates.push_back({r, s, 0, 0, 0});
  }
  if (candidates.size() > 1) {
    std::stable_sort(candidates.begin() + 1, candidates.end(), [](const Share& a, const Share& b) {
      return a.sequence->pending() < b.sequence->pending();
    });
  }
  return candidates;
}

// Puts at most `most_tokens` of a sequence into the batch. False when its cache has no room.
bool Batcher::TakeShare(Batch* batch, int64_t most_tokens, int64_t rows_left, Share* share) const {
  Sequence& s = *share->sequence;
  share->n_tokens = std::min(s.pending(), most_tokens);
  if (s.observer_) {
    const int64_t unobserved = std::max<int64_t>(0, s.first_observed_ - s.evaluated());
    share->n_tokens = std::min(share->n_tokens, unobserved + rows_left);
  }
  absl::Status room = s.blocks_.Reserve(s.evaluated() + share->n_tokens);
  if (!room.ok()) {
    share->request->status = std::move(room);
    return false;
  }
  int32_t first_token = 0;
  for (const BatchPart& part : batch->parts)
    first_token += static_cast<int32_t>(part.tokens.size());
  share->first_row = batch->output_rows.size();
  for (int64_t i = 0; i < share->n_tokens; ++i) {
    const bool wanted = i + 1 == s.pending() || s.Observes(s.evaluated() + i);
    if (wanted) batch->output_rows.push_back(first_token + static_cast<int32_t>(i));
  }
  share->n_rows = batch->output_rows.size() - share->first_row;
  batch->parts.push_back(
      {std::span<const int32_t>(s.tokens_).subspan(static_cast<size_t>(s.evaluated()),
                                                   static_cast<size_t>(share->n_tokens)),
       s.evaluated(), &s.blocks_});
  return true;
}

std::vector<Batcher::Share> Batcher::FormBatch(Batch* batch) {
  std::vector<Share> candidates = Candidates();
  const SegmentLimits& limits = model_->limits();
  int64_t tokens_left = limits.max_tokens;
  int64_t rows_left = limits.max_output_rows;
  // The one in front leaves a token to each of the others that can come along.
  const int64_t others = std::min({static_cast<int64_t>(candidates.size()) - 1,
                                   limits.max_sequences - 1, tokens_left - 1, rows_left - 1});
  std::vector<Share> shares;
  for (Share& share : candidates) {
    if (static_cast<int64_t>(shares.size()) == limits.max_sequences) break;
    if (tokens_left == 0 || rows_left == 0) break;
    if (!share.request->status.ok()) continue;
    const int64_t reserved = shares.empty() ? others : 0;
    if (!TakeShare(batch, tokens_left - reserved, rows_left - reserved, &share)) continue;
    tokens_left -= share.n_tokens;
    rows_left -= static_cast<int64_t>(share.n_rows);
    shares.push_back(share);
  }
  // A pass has at least one row of output, wanted or not.
  if (!shares.empty() && batch->output_rows.empty()) batch->output_rows.push_back(0);
  return shares;
}

void Batcher::Deliver(const std::vector<Share>& shares, std::span<const float> logits) {
  const auto width = static_cast<size_t>(model_->output_width());
  for (const Share& share : shares) {
    Sequence& s = *share.sequence;
    const int64_t end = s.evaluated_ + share.n_tokens;
    const int64_t first_position = end - static_cast<int64_t>(share.n_rows);
    for (size_t i = 0; i < share.n_rows; ++i) {
      const int64_t position = first_position + static_cast<int64_t>(i);
      const auto row = logits.subspan((share.first_row + i) * width, width);
      if (s.Observes(position)) s.observer_(position, row);
      if (position + 1 == s.size()) {
        s.logits_.assign(row.begin(), row.end());
        s.logits_position_ = position;
      }
    }
    s.evaluated_ = end;
    if (s.progress_) s.progress_(end, s.size());
  }
}

// Lets go of requests that are done or have failed.
void Batcher::Settle() {
  for (Request* r : queue_) {
    std::erase_if(r->left, [](const Sequence* s) { return s->pending() == 0; });
    r->done = r->left.empty() || !r->status.ok();
  }
  std::erase_if(queue_, [](const Request* r) { return r->done; });
}

void Batcher::Step(std::unique_lock<std::mutex>& lock) {
  Batch batch;
  const std::vector<Share> shares = FormBatch(&batch);
  if (!shares.empty()) {
    // The sequences belong to callers who wait for us, so they stay as they are meanwhile.
    lock.unlock();
    const auto logits = model_->Forward(batch);
    if (logits.ok()) Deliver(shares, *logits);
    lock.lock();
    if (!logits.ok()) {
      for (const Share& share : shares) share.request->status = logits.status();
    }
  }
  Settle();
  changed_.notify_all();
}

}  // namespace trine
