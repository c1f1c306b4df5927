// Passes that have landed: what they gave, to those who asked for it.
#include <exception>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "runtime/batcher.h"
#include "runtime/flight.h"

namespace trine {

// What has landed, as far as its owners are here to be told.
void Batcher::TakeHome() {
  for (const auto& flight : flights_) {
    if (!flight->landed()) continue;
    flight->Look();
    std::erase_if(flight->shares(), [&](const Share& share) {
      if (flight->ok() && !share.sequence->waiting_) return false;
      if (flight->ok()) {
        home_.emplace_back(flight, share);
      } else {
        share.sequence->in_flight_ -= share.n_tokens;
        // Without a way to go on, who was in the pass learns of it; who was behind it comes along
        // again.
        const absl::Status& status = flight->status();
        if (!CanRecover(status) && !absl::IsAborted(status)) Tell(share.sequence, status);
      }
      return true;
    });
  }
  const auto empty = [](const auto& f) { return f->landed() && f->shares().empty(); };
  for (const auto& flight : flights_) {
    const bool again = flight->ok() && flight->is_of(log_.get());
    if (!empty(flight) || !again || idle_flights_.size() == idle_flights_.capacity()) continue;
    idle_flights_.push_back(flight);
  }
  std::erase_if(flights_, empty);
}

void Batcher::Land(std::unique_lock<std::mutex>& lock) {
  const absl::Cleanup forget = [this] {
    home_.clear();
    failed_.clear();
  };
  TakeHome();
  if (!home_.empty()) BringHome(lock);
}

void Batcher::BringHome(std::unique_lock<std::mutex>& lock) {
  failed_.reserve(home_.size());
  // The sequences belong to callers who wait for us, so they stay as they are meanwhile.
  lock.unlock();
  Trace* const trace = options_.trace.get();
  const auto begin = Trace::Clock::now();
  for (const auto& [flight, share] : home_) {
    absl::Status status = DeliverQuietly(*flight, share);
    share.sequence->in_flight_ -= share.n_tokens;
    if (status.ok()) KeepFilled(share);
    if (!status.ok()) failed_.emplace_back(share.sequence, std::move(status));
  }
  const auto end = Trace::Clock::now();
  if (trace != nullptr) {
    trace->Add(track_, "deliver", begin, end, {{"sequences", static_cast<int64_t>(home_.size())}});
  }
  lock.lock();
  times_.deliver_ns += Nanoseconds(end - begin);
  for (const auto& [flight, share] : home_) {
    Sequence& s = *share.sequence;
    s.landed_at_ = flight->landed_at();
    // What another model has read is in a cache that is gone.
    if (options_.prefix_cache != nullptr && s.epoch_ == epoch_) s.OfferTo(options_.prefix_cache);
  }
  for (const Request* r : queue_) {
    if (r->until != Until::kDrained && r->status.ok() && IsServed(*r)) SendAway(*r);
  }
  for (const auto& [sequence, status] : failed_) Tell(sequence, status);
}

void Batcher::Tell(const Sequence* sequence, const absl::Status& status) {
  for (Request* r : queue_) {
    if (std::count(r->left.begin(), r->left.end(), sequence) != 0) r->status = status;
  }
}

// What an observer throws is its caller's own affair.
absl::Status Batcher::DeliverQuietly(const Flight& flight, const Share& share) {
  try {
    Deliver(flight, share);
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& e) {
    return absl::InternalError(e.what());
  } catch (...) {
    return absl::InternalError("something unknown was thrown");
  }
}

void Batcher::Deliver(const Flight& flight, const Share& share) {
  Sequence& s = *share.sequence;
  if (share.begin != s.evaluated_) return;  // what is before it was not taken: it comes again
  s.Settle();
  const int64_t end = share.begin + share.n_tokens;
  const int64_t first_position = end - static_cast<int64_t>(share.n_rows);
  for (size_t i = 0; i < share.n_rows; ++i) {
    const int64_t position = first_position + static_cast<int64_t>(i);
    const auto row = flight.row(share.first_row + i, s.hidden_);
    if (s.Observes(position)) s.observer_(position, row);
    if (position + 1 != s.size()) continue;
    s.SetLogits(row, position);
    if (s.keeps_hidden_) s.SetHiddenRow(flight.row(share.first_row + i, true), position);
  }
  s.evaluated_ = end;
  if (s.progress_ && end > s.replay_until_) s.progress_(end, s.size());
}

}  // namespace trine
