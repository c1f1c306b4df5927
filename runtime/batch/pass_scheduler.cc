#include "runtime/batch/pass_scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;
using Until = BatchRequest::Until;

// A waiting leader checks this often whether a stage hangs.
constexpr std::chrono::milliseconds kLookout(50);

}  // namespace

absl::Status PassScheduler::UseModel() {
  const StagedModel& on = recovery_.staged();
  const std::vector<SegmentPlace>& places = on.model->places();
  groups_ = PassGroups(static_cast<int64_t>(places.size()), shared_.options.mixed_tokens > 0);
  former_.Use(on);
  const auto sequences = static_cast<size_t>(on.model->limits().max_sequences);
  queue_.reserve(sequences);
  away_.Reserve(sequences);
  active_.reserve(3 * sequences);  // sampling, waiting and in flight, before duplicates go
  for (const SegmentPlace& place : places) {
    if (on.keep_rows) shared_.times.device_ns[place.device_name];  // else the host never waits
  }
  return absl::OkStatus();
}

// ---- Requests and the leader

std::unique_ptr<BatchRequest> PassScheduler::IdleRequest() {
  if (idle_requests_.empty()) {
    idle_requests_.reserve(++requests_);  // room for returning this one
    return std::make_unique<BatchRequest>();
  }
  std::unique_ptr<BatchRequest> request = std::move(idle_requests_.back());
  idle_requests_.pop_back();
  request->Clear();
  return request;
}

// Adds a request to the queue. Returns null if there is nothing to wait for.
std::unique_ptr<BatchRequest> PassScheduler::Enqueue(Until until,
                                                     std::span<Sequence* const> sequences) {
  std::unique_ptr<BatchRequest> request = IdleRequest();
  request->until = until;
  request->longest = 0;
  for (Sequence* sequence : sequences) {
    const Sequence::Evaluation s(sequence);
    const bool asks = until == Until::kDrained ? s.in_flight() != 0 : s->pending() != 0;
    if (!asks && until != Until::kDrained) continue;
    const auto since = away_.Remove(sequence);  // also for kDrained: the owner will not come back
    if (!asks) continue;
    request->left.push_back(s);
    request->longest = std::max(request->longest, s.left());
    if (until == Until::kDrained || !since) continue;
    if (s.left() == 1) groups_.HostTook(Clock::now() - *since);
  }
  if (request->left.empty()) {
    idle_requests_.push_back(std::move(request));
    return nullptr;
  }
  request->one_done = until == Until::kOneDone && request->left.size() < sequences.size();
  queue_.push_back(request.get());
  for (Sequence::Evaluation s : request->left) s.set_waiting(true);
  return request;
}

absl::Status PassScheduler::Ask(Until until, std::span<Sequence* const> sequences) {
  std::unique_lock<std::mutex> lock(shared_.mutex);
  if (!recovery_.ended().ok()) return recovery_.ended();
  std::unique_ptr<BatchRequest> request = Enqueue(until, sequences);
  if (request == nullptr) return absl::OkStatus();
  shared_.arrivals = true;
  if (leading_) shared_.news.notify_one();  // a pass may have room for it
  bool leads = false;
  // Runs even if memory runs out in the middle of a pass. No request may stay in the queue after
  // its caller has left, and no thread may wait for a leader that has left.
  absl::Cleanup leave = [&] {
    Leave(lock, request.get());
    HandOver(leads);
  };
  WaitOrLead(lock, request->done, request->wake, &leads);
  std::move(leave).Invoke();
  absl::Status status = std::move(request->status);
  idle_requests_.push_back(std::move(request));
  return status;
}

absl::Status PassScheduler::Replace(const Prepare& prepare, const Recovery::LoadNext& load) {
  std::unique_lock<std::mutex> lock(shared_.mutex);
  shared_.changed.wait(lock, [&] { return replacement_ == nullptr; });
  Replacement replacement{prepare, load, {}};
  replacement_ = &replacement;
  bool leads = false;
  const absl::Cleanup leave = [&] {  // also when memory runs out during delivery
    if (!lock.owns_lock()) lock.lock();
    if (replacement_ == &replacement) replacement_ = nullptr;
    HandOver(leads);
  };
  WaitOrLead(lock, replacement.done, shared_.changed, &leads);
  return replacement.status;
}

// Waits on `wake` while another thread leads, and leads while none does, until `done`.
void PassScheduler::WaitOrLead(std::unique_lock<std::mutex>& lock, const bool& done,
                               std::condition_variable& wake, bool* leads) {
  while (!done) {
    if (leading_ && !*leads) {
      wake.wait(lock);
      continue;
    }
    leading_ = *leads = true;
    Step(lock);
  }
}

void PassScheduler::Leave(std::unique_lock<std::mutex>& lock, BatchRequest* request) {
  if (!lock.owns_lock()) lock.lock();
  if (!request->done) {  // an exception: the caller's sequences may be destroyed
    shared_.changed.wait(lock, [&] { return !former_.AnyInFlight(request->left); });
    former_.Forget(request->left);
  }
  for (Sequence::Evaluation s : request->left) s.set_waiting(false);
  std::erase(queue_, request);
}

// Makes sure that there is a leader as long as a request waits. Wakes only one owner, because the
// other owners would only find that it leads.
void PassScheduler::HandOver(bool leads) {
  if (leads) leading_ = false;
  shared_.changed.notify_all();
  if (leading_) {
    shared_.news.notify_all();
  } else if (!queue_.empty()) {
    queue_.front()->wake.notify_one();
  }
}

// Returns whether the caller of the request can return. It can if its sequences have been evaluated
// as it asked. It can also if the request has failed, or drains, and no pass holds its tokens.
bool PassScheduler::IsServed(const BatchRequest& request) {
  const auto& left = request.left;
  const auto evaluated = [](Sequence::Evaluation s) { return s->pending() == 0; };
  if (request.until == Until::kDrained || !request.status.ok()) {
    return std::none_of(left.begin(), left.end(),
                        [](Sequence::Evaluation s) { return s.in_flight() != 0; });
  }
  if (request.until == Until::kAllDone) return std::all_of(left.begin(), left.end(), evaluated);
  return request.one_done || std::any_of(left.begin(), left.end(), evaluated);
}

// Marks served requests as done and wakes their owners. Returns whether there were any.
bool PassScheduler::Settle() {
  for (BatchRequest* r : queue_) r->done = IsServed(*r);
  // When a request is done its sequences belong to their owner again, even before its thread wakes.
  for (BatchRequest* r : queue_) {
    for (Sequence::Evaluation s : r->left) s.set_waiting(!r->done);
  }
  const size_t settled = std::erase_if(queue_, [](BatchRequest* r) {
    if (r->done) r->wake.notify_one();
    return r->done;
  });
  return settled > 0;
}

void PassScheduler::Tell(Sequence::Evaluation sequence, const absl::Status& status) {
  for (BatchRequest* r : queue_) {
    if (std::count(r->left.begin(), r->left.end(), sequence) != 0) r->status = status;
  }
}

// ---- Steps

// Does one thing per call, so that the caller of a finished request returns as soon as possible.
void PassScheduler::Step(std::unique_lock<std::mutex>& lock) {
  shared_.arrivals = false;
  next_look_.reset();
  FinishPasses(lock);
  if (former_.any_fresh()) return;  // finished during delivery
  const int64_t in_flight = former_.in_flight();
  const bool stops = recovery_.failed() || replacement_ != nullptr;
  const bool room = recovery_.ended().ok() && !stops && in_flight < groups_.most();
  // A model with its own threads gets its next pass before any owner leaves to sample.
  const bool early = recovery_.staged().keep_rows;
  if (room && early && StartPass(lock)) return;
  if (Settle()) return;
  if (recovery_.failed() && in_flight == 0) return GoOn(recovery_.Recover(lock)).IgnoreError();
  if (replacement_ != nullptr && in_flight == 0) return RunReplacement(lock);
  if (room && !early && StartPass(lock)) return;
  if (Settle()) return;  // forming a pass may have failed some requests
  if (in_flight > 0 || next_look_) AwaitPass(lock);
}

// Records the times and failures of finished passes, and delivers their rows to waiting owners.
void PassScheduler::FinishPasses(std::unique_lock<std::mutex>& lock) {
  for (const auto& pass : former_.passes()) {
    if (!pass->fresh()) continue;
    if (pass->ok() && pass->decoded()) groups_.StageTook(pass->slowest());
    if (pass->ok()) continue;
    recovery_.NoteFailure(pass->status());
    if (!recovery_.IsForRequests(pass->status())) continue;
    for (const PassShare& share : pass->shares()) Tell(share.sequence, pass->status());
  }
  if (!former_.Collect(recovery_.staged().log.get())) return;
  const PassFormer::Failures& failures = former_.Deliver(lock, recovery_.staged().epoch);
  for (const BatchRequest* r : queue_) {
    if (r->until != Until::kDrained && r->status.ok() && IsServed(*r)) SendAway(*r);
  }
  for (const auto& [sequence, status] : failures) Tell(sequence, status);
}

// Starts a pass if one is due and the pass former can form one. Returns whether it did.
bool PassScheduler::StartPass(std::unique_lock<std::mutex>& lock) {
  const StagedModel& on = recovery_.staged();
  const auto begin = Trace::Clock::now();
  const std::optional<PassSize> size = DuePass();
  if (!size) return false;
  std::shared_ptr<PassJob> pass = former_.Form(on, *size);
  if (pass == nullptr) return false;
  shared_.times.prepare_ns +=
      shared_.Worked("prepare", begin, {{"pass", static_cast<int64_t>(pass->number())}});
  lock.unlock();
  on.pipeline->Submit(std::move(pass));
  lock.lock();
  return true;
}

// Waits until a pass finishes, something arrives, or the owners that are away are late. Watches the
// stages while it waits.
void PassScheduler::AwaitPass(std::unique_lock<std::mutex>& lock) {
  former_.MakeAhead(lock, *recovery_.staged().model);
  const auto news = [&] { return shared_.arrivals || former_.any_fresh(); };
  while (true) {
    Clock::time_point until = Clock::now() + kLookout;
    if (next_look_) until = std::min(until, *next_look_);
    const bool watch = Clock::now() - watched_ >= kLookout;  // even when news never stop
    if (!watch) {
      uint64_t* const waits_for = WaitsFor();
      const Clock::time_point begin = Clock::now();
      const bool heard = shared_.news.wait_until(lock, until, news);
      *waits_for += Nanoseconds(Clock::now() - begin);
      if (heard) return;
    }
    if (!watch && next_look_ && Clock::now() >= *next_look_) return;
    watched_ = Clock::now();
    if (recovery_.AbandonIfHung(lock)) return;
  }
}

// Returns the counter for the time that the leader waits: the one of the device that has the oldest
// pass in flight, of owners that are sampling, or of fetched blocks.
uint64_t* PassScheduler::WaitsFor() {
  HostTimes& times = shared_.times;
  for (const auto& pass : former_.passes()) {
    if (pass->finished()) continue;
    return &times.device_ns[recovery_.staged().model->places()[pass->stage()].device_name];
  }
  return awaits_blocks_ ? &times.blocks_ns : &times.owners_ns;
}

void PassScheduler::RunReplacement(std::unique_lock<std::mutex>& lock) {
  Replacement& r = *replacement_;
  lock.unlock();
  r.status = Quietly(r.prepare);
  lock.lock();
  if (r.status.ok()) r.status = GoOn(recovery_.LoadAnew(lock, r.load));
  r.done = true;
  replacement_ = nullptr;
  shared_.changed.notify_all();
}

// Continues after the recovery has returned `status`. If the recovery has no model, ends the
// batcher: delivers nothing more, and gives the status to all requests. Returns the status.
absl::Status PassScheduler::GoOn(absl::Status status) {
  if (status.ok()) status = Quietly([&] { return UseModel(); });
  if (status.ok()) return status;
  recovery_.End(status);
  former_.ForgetAll();
  for (BatchRequest* r : queue_) r->status = status;
  return status;
}

// ---- When a pass is due

// Returns the size of the pass that is due; nullopt if none is due, or if it waits until
// next_look_.
std::optional<PassSize> PassScheduler::DuePass() {
  const StagedModel& on = recovery_.staged();
  const int64_t mixed_tokens = shared_.options.mixed_tokens;
  const PassDemand demand = former_.FindCandidates(queue_, on.epoch);
  awaits_blocks_ = demand.awaits_blocks;
  if (demand.sequences == 0 && demand.awaits_blocks) next_look_ = Clock::now() + kLookout;
  if (demand.sequences == 0) return std::nullopt;
  // Pieces of a prompt need not wait for the host, so each stage has one in store.
  const int64_t passes = demand.prompts ? groups_.most() : groups_.count();
  if (former_.in_flight() >= passes) return std::nullopt;
  const auto back = away_.ExpectedBack(groups_.patience());
  PassSize size{MostSequences(passes), on.model->limits().max_tokens, groups_.most()};
  const bool waits = !demand.prompts || (mixed_tokens > 0 && passes == 1);
  if (waits && back && demand.sequences < size.sequences) {
    next_look_ = back;
    return std::nullopt;
  }
  if (mixed_tokens > 0 && demand.prompts && AnyDecodes(demand)) {
    const int64_t least = std::min(demand.sequences, size.sequences);
    size.tokens = std::min(size.tokens, std::max(mixed_tokens, least));
  }
  return size;
}

// Returns the most sequences of one pass when `passes` passes are to be in flight.
int64_t PassScheduler::MostSequences(int64_t passes) {
  const int64_t most = recovery_.staged().model->limits().max_sequences;
  if (passes == 1) return most;
  active_.clear();
  away_.AppendExpected(groups_.patience(), &active_);
  for (const BatchRequest* r : queue_) {
    for (Sequence::Evaluation s : r->left) active_.push_back(s.get());
  }
  for (const auto& pass : former_.passes()) {
    for (const PassShare& share : pass->shares()) active_.push_back(share.sequence.get());
  }
  std::sort(active_.begin(), active_.end());
  active_.erase(std::unique(active_.begin(), active_.end()), active_.end());
  return std::min(most, (static_cast<int64_t>(active_.size()) + passes - 1) / passes);
}

// Returns whether any sequence decodes: one that waits, is in a pass, or whose owner is sampling.
bool PassScheduler::AnyDecodes(const PassDemand& demand) const {
  if (demand.decodes || away_.AnyDecodes()) return true;
  for (const auto& pass : former_.passes()) {
    for (const PassShare& share : pass->shares()) {
      if (share.n_tokens == 1) return true;
    }
  }
  return false;
}

// Records that the owner is away sampling. Its time away begins at the end of the last pass that it
// waited for.
void PassScheduler::SendAway(const BatchRequest& request) {
  Clock::time_point last{};
  for (Sequence::Evaluation s : request.left) last = std::max(last, s.finished_at());
  for (Sequence::Evaluation s : request.left) {
    if (s->pending() != 0) continue;
    away_.Add(s.get(), request.until == Until::kAllDone ? last : s.finished_at());
  }
}

}  // namespace trine
