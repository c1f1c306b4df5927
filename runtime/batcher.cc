#include "runtime/batcher.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "plugins/device_fault.h"
#include "runtime/flight.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

// Calls what may run out of memory.
absl::Status Quietly(const std::function<absl::Status()>& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& e) {
    return absl::InternalError(e.what());
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Batcher>> Batcher::Create(std::shared_ptr<Model> model,
                                                         BatcherOptions options) {
  std::unique_ptr<Batcher> batcher(new Batcher(std::move(options)));
  if (Trace* trace = batcher->options_.trace.get(); trace != nullptr) {
    batcher->track_ = trace->AddTrack("host");
  }
  if (absl::Status s = batcher->SetModel(std::move(model)); !s.ok()) return s;
  return batcher;
}

// Passes that land on its way out still find the rest of it.
Batcher::~Batcher() { pipeline_.reset(); }

bool Batcher::CanRecover(const absl::Status& status) const {
  return options_.recover != nullptr && !FaultyDevice(status).empty();
}

absl::Status Batcher::SetModel(std::shared_ptr<Model> model) {
  PipelineOptions options;
  for (const SegmentPlace& place : model->places()) options.stages.push_back(place.device_name);
  const size_t stages = options.stages.size();
  groups_ = PassGroups(static_cast<int64_t>(stages), options_.mixed_tokens > 0);
  fetch_tokens_ = std::numeric_limits<int64_t>::max();
  for (const DetourInfo& detour : model->detours()) {
    if (detour.kind != DetourKind::kStreamed) continue;
    fetch_tokens_ = std::min(fetch_tokens_, detour.first_tokens);
  }
  options.waiting = static_cast<size_t>(groups_.most());
  options.on_caller = stages == 1 && model->StageDevices(0) == std::vector<std::string>{"cpu"} &&
                      !options_.watch_cpu;
  // With threads of their own, stages may be at the next pass before the rows of this one are read.
  keep_rows_ = !options.on_caller;
  const uint64_t epoch = model_ == model ? epoch_ : epoch_ + 1;
  auto log = std::make_shared<StageLog>(model->places(), model->detours(), epoch, options_.trace);
  options.trace = log->trace();
  options.tracks = log->tracks();
  auto pipeline = Pipeline::Create(std::move(options));
  if (!pipeline.ok()) return pipeline.status();
  pipeline_ = *std::move(pipeline);
  log_ = std::move(log);
  // Two more than are under way: stages may still be leaving those that have landed.
  const auto most = static_cast<size_t>(groups_.most());
  idle_flights_.clear();
  idle_flights_.reserve(most + 2);
  while (idle_flights_.size() < most + 2) {
    idle_flights_.push_back(std::make_shared<Flight>(this, *model, log_, keep_rows_));
  }
  ahead_.Reset(*model, most);
  ReserveForDecode(most, static_cast<size_t>(model->limits().max_sequences));
  for (const SegmentPlace& place : model->places()) {
    if (keep_rows_) times_.device_ns[place.device_name];  // else nobody waits
  }
  // Under the mutex, like adopting and offering: no block of one epoch is found in another.
  if (epoch != epoch_ && options_.prefix_cache != nullptr) options_.prefix_cache->Clear();
  epoch_ = epoch;
  model_ = std::move(model);
  return absl::OkStatus();
}

// How sequences come together in passes is a matter of time: more than ever in one must be no
// reason to allocate.
void Batcher::ReserveForDecode(size_t passes, size_t sequences) {
  flights_.reserve(passes + sequences);  // those that wait for their owners, too
  for (Batch* batch : {&batch_, &next_batch_}) {
    batch->parts.reserve(sequences);
    batch->output_rows.reserve(sequences);
  }
  queue_.reserve(sequences);
  away_.reserve(sequences);
  candidates_.reserve(sequences);
  active_.reserve(3 * sequences);  // away, asked for and under way, before they are made one
  home_.reserve(sequences);
  failed_.reserve(sequences);
}

absl::Status Batcher::Evaluate(std::span<Sequence* const> sequences) {
  return Ask(Until::kAllDone, sequences);
}

absl::Status Batcher::EvaluateSome(std::span<Sequence* const> sequences) {
  return Ask(Until::kOneDone, sequences);
}

void Batcher::Drain(std::span<Sequence* const> sequences) {
  Ask(Until::kDrained, sequences).IgnoreError();
}

std::unique_ptr<Batcher::Request> Batcher::IdleRequest() {
  if (idle_requests_.empty()) {
    idle_requests_.reserve(++requests_);  // there is room for it when it comes back
    return std::make_unique<Request>();
  }
  std::unique_ptr<Request> request = std::move(idle_requests_.back());
  idle_requests_.pop_back();
  request->Begin();
  return request;
}

absl::Status Batcher::Ask(Until until, std::span<Sequence* const> sequences) {
  int64_t longest = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  if (!ended_.ok()) return ended_;
  std::unique_ptr<Request> own = IdleRequest();
  Request& request = *own;
  request.until = until;
  for (Sequence* s : sequences) {
    const auto away =
        std::find_if(away_.begin(), away_.end(), [&](const Away& a) { return a.sequence == s; });
    if (until == Until::kDrained && away != away_.end())
      away_.erase(away);  // it has what it wanted
    if (until == Until::kDrained ? s->in_flight_ == 0 : s->pending() == 0) continue;
    request.left.push_back(s);
    longest = std::max(longest, s->pending() - s->in_flight_);
    if (until == Until::kDrained || away == away_.end()) continue;
    if (s->pending() - s->in_flight_ == 1) groups_.HostTook(Clock::now() - away->since);
    away_.erase(away);
  }
  if (request.left.empty()) {
    idle_requests_.push_back(std::move(own));
    return absl::OkStatus();
  }
  if (until == Until::kOneDone && request.left.size() < sequences.size()) request.one_done = true;
  request.longest = longest;
  queue_.push_back(&request);
  for (Sequence* s : request.left) s->waiting_ = true;
  arrivals_ = true;
  if (leading_) news_.notify_one();  // there may be room for it
  bool leads = false;
  // Also when memory runs out in mid-pass: no one may find a request whose caller has gone, or wait
  // for a leader that has.
  absl::Cleanup leave = [&] { Leave(lock, &request, leads); };
  while (!request.done) {
    if (leading_ && !leads) {
      request.wake.wait(lock);
      continue;
    }
    leading_ = leads = true;
    Step(lock);
  }
  std::move(leave).Invoke();
  absl::Status status = std::move(request.status);
  idle_requests_.push_back(std::move(own));
  return status;
}

absl::Status Batcher::Replace(const Prepare& prepare, const LoadNext& load) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return replacement_ == nullptr; });
  Replacement replacement{prepare, load, {}};
  replacement_ = &replacement;
  bool leads = false;
  const absl::Cleanup leave = [&] {  // also when memory runs out while others are brought home
    if (!lock.owns_lock()) lock.lock();
    if (replacement_ == &replacement) replacement_ = nullptr;
    if (leads) leading_ = false;
    HandOver();
  };
  while (!replacement.done) {
    if (leading_ && !leads) {
      changed_.wait(lock);
      continue;
    }
    leading_ = leads = true;
    Step(lock);
  }
  return replacement.status;
}

void Batcher::Leave(std::unique_lock<std::mutex>& lock, Request* request, bool leads) {
  if (!lock.owns_lock()) lock.lock();
  const auto holds = [&](const Share& share) {
    return std::count(request->left.begin(), request->left.end(), share.sequence) != 0;
  };
  if (!request->done) {  // something was thrown, and the caller's sequences may go with it
    changed_.wait(lock, [&] {
      return std::none_of(flights_.begin(), flights_.end(), [&](const auto& flight) {
        return !flight->landed() &&
               std::any_of(flight->shares().begin(), flight->shares().end(), holds);
      });
    });
    for (const auto& flight : flights_) std::erase_if(flight->shares(), holds);
    for (Sequence* s : request->left) s->in_flight_ = 0;
  }
  for (Sequence* s : request->left) s->waiting_ = false;
  std::erase(queue_, request);
  if (leads) leading_ = false;
  HandOver();
}

// Whoever waits for something that happens rarely is told of it, and the leader.
void Batcher::Announce() {
  news_.notify_all();
  changed_.notify_all();
}

// Somebody leads, as long as anybody waits: not all are woken for it, since each would only find
// that another was first.
void Batcher::HandOver() {
  changed_.notify_all();
  if (leading_) {
    news_.notify_all();
  } else if (!queue_.empty()) {
    queue_.front()->wake.notify_one();
  }
}

// One thing at a time, so that whoever is done can leave as soon as may be.
void Batcher::Step(std::unique_lock<std::mutex>& lock) {
  arrivals_ = false;
  next_look_.reset();
  Land(lock);
  if (AnyFresh()) return;  // landed while others were brought home
  const int64_t under_way = UnderWay();
  const bool room =
      ended_.ok() && failure_.ok() && replacement_ == nullptr && under_way < groups_.most();
  // With threads of its own the model is kept busy before anybody leaves to sample.
  if (room && keep_rows_ && TakeOff(lock)) return;
  if (Settle()) return;
  if (!failure_.ok() && under_way == 0) return Recover(lock);
  if (replacement_ != nullptr && under_way == 0) return RunReplacement(lock);
  if (room && !keep_rows_ && TakeOff(lock)) return;
  if (Settle()) return;  // some were told that they can't go on
  if (under_way > 0 || next_look_) AwaitLanding(lock);
}

int64_t Batcher::UnderWay() const {
  return std::count_if(flights_.begin(), flights_.end(),
                       [](const auto& f) { return !f->landed(); });
}

bool Batcher::AnyFresh() const {
  return std::any_of(flights_.begin(), flights_.end(), [](const auto& f) { return f->fresh(); });
}

bool Batcher::TakeOff(std::unique_lock<std::mutex>& lock) {
  Trace* const trace = options_.trace.get();
  const auto begin = Trace::Clock::now();
  flights_.reserve(flights_.size() + 1);
  std::shared_ptr<Flight> flight = FormFlight();
  if (flight == nullptr) return false;
  const auto end = Trace::Clock::now();
  times_.prepare_ns += Nanoseconds(end - begin);
  if (trace != nullptr) {
    trace->Add(track_, "prepare", begin, end, {{"pass", static_cast<int64_t>(passes_)}});
  }
  flights_.push_back(flight);
  lock.unlock();
  pipeline_->Submit(std::move(flight));
  lock.lock();
  return true;
}

std::optional<std::pair<Pipeline::Running, std::string>> Batcher::HungStage() const {
  for (const Pipeline::Running& running : pipeline_->AllRunning()) {
    if (running.time < options_.stage_limit) continue;
    BusyDevice busy = model_->Busiest(running.stage);
    if (busy.since && Clock::now() - *busy.since < options_.stage_limit) continue;
    if (busy.name != "cpu" || options_.watch_cpu) return std::pair(running, std::move(busy.name));
  }
  return std::nullopt;
}

void Batcher::AwaitLanding(std::unique_lock<std::mutex>& lock) {
  MakeAhead(lock);
  const auto news = [&] { return arrivals_ || AnyFresh(); };
  while (true) {
    Clock::time_point until = Clock::now() + kLookout;
    if (next_look_) until = std::min(until, *next_look_);
    const bool watch = Clock::now() - watched_ >= kLookout;  // however much else there is
    if (!watch) {
      uint64_t* const waits_for = WaitsFor();
      const Clock::time_point begin = Clock::now();
      const bool heard = news_.wait_until(lock, until, news);
      *waits_for += Nanoseconds(Clock::now() - begin);
      if (heard) return;
    }
    if (!watch && next_look_ && Clock::now() >= *next_look_) return;
    watched_ = Clock::now();
    const auto hung = HungStage();
    if (!hung) continue;
    const absl::Status why = OnDevice(
        hung->second, absl::DeadlineExceededError(absl::StrCat(
                          "it has not come back from a pass within ",
                          static_cast<double>(options_.stage_limit.count()) / 1000, " s")));
    lock.unlock();
    log_->Hung(hung->first.stage, hung->first.time);
    pipeline_->Abandon(why);
    lock.lock();
    failure_ = why;  // the worse, where something had failed before
    return;
  }
}

// Of several passes the one that took off first is waited for.
uint64_t* Batcher::WaitsFor() {
  for (const auto& flight : flights_) {
    if (flight->landed() || model_ == nullptr || model_->places().empty()) continue;
    const std::vector<SegmentPlace>& places = model_->places();
    return &times_.device_ns[places[std::min(flight->stage(), places.size() - 1)].device_name];
  }
  return awaits_blocks_ ? &times_.blocks_ns : &times_.owners_ns;
}

// Lets go of the model and of its threads, which have nothing left to do, before it loads the next:
// that may need their memory.
absl::Status Batcher::LoadAnew(std::unique_lock<std::mutex>& lock, const LoadNext& load) {
  std::shared_ptr<Model> model = std::move(model_);
  std::unique_ptr<Pipeline> pipeline = std::move(pipeline_);
  lock.unlock();
  absl::Status status = Quietly([&] {
    pipeline.reset();
    model.reset();
    auto next = load();
    if (next.ok()) model = *std::move(next);
    return next.status();
  });
  lock.lock();
  if (!status.ok()) return status;
  return Quietly([&] { return SetModel(std::move(model)); });
}

void Batcher::Recover(std::unique_lock<std::mutex>& lock) {
  const absl::Status failure = std::exchange(failure_, absl::OkStatus());
  absl::Status status;
  if (CanRecover(failure)) {
    status = LoadAnew(lock, [&] { return options_.recover(failure); });
  } else {  // the same: what it has read it still knows
    std::unique_ptr<Pipeline> pipeline = std::move(pipeline_);
    lock.unlock();
    pipeline.reset();
    lock.lock();
    status = Quietly([&] { return SetModel(model_); });
  }
  if (!status.ok()) EndWith(status);
}

void Batcher::RunReplacement(std::unique_lock<std::mutex>& lock) {
  Replacement& r = *replacement_;
  lock.unlock();
  r.status = Quietly(r.prepare);
  lock.lock();
  if (r.status.ok()) {
    r.status = LoadAnew(lock, r.load);
    if (r.status.ok()) ended_ = absl::OkStatus();
    if (!r.status.ok()) EndWith(r.status);
  }
  r.done = true;
  replacement_ = nullptr;
  changed_.notify_all();
}

// There is no model any more. Nothing more is brought home.
void Batcher::EndWith(const absl::Status& status) {
  ended_ = status;
  for (const auto& flight : flights_) {
    for (const Share& share : flight->shares()) share.sequence->in_flight_ -= share.n_tokens;
  }
  flights_.clear();
  for (Request* r : queue_) r->status = status;
}

// Lets go of requests that are done or have failed. True when there were any.
bool Batcher::IsServed(const Request& request) {
  const auto& left = request.left;
  const auto home = [](const Sequence* s) { return s->pending() == 0; };
  if (request.until == Until::kDrained || !request.status.ok()) {
    return std::none_of(left.begin(), left.end(),
                        [](const Sequence* s) { return s->in_flight_ != 0; });
  }
  if (request.until == Until::kAllDone) return std::all_of(left.begin(), left.end(), home);
  return request.one_done || std::any_of(left.begin(), left.end(), home);
}

// What follows is the host's time: from the last landing that the caller had to wait for.
void Batcher::SendAway(const Request& request) {
  Clock::time_point last{};
  for (const Sequence* s : request.left) last = std::max(last, s->landed_at_);
  for (const Sequence* s : request.left) {
    if (s->pending() != 0) continue;
    const Clock::time_point since = request.until == Until::kAllDone ? last : s->landed_at_;
    const auto known = std::find_if(away_.begin(), away_.end(),
                                    [&](const Away& away) { return away.sequence == s; });
    if (known == away_.end()) {
      away_.push_back({s, since});
    } else {
      known->since = since;
    }
  }
}

bool Batcher::Settle() {
  for (Request* r : queue_) r->done = IsServed(*r);
  // From here on its sequences are their owner's, awake or not.
  for (Request* r : queue_) {
    for (Sequence* s : r->left) s->waiting_ = !r->done;
  }
  const size_t settled = std::erase_if(queue_, [](Request* r) {
    if (r->done) r->wake.notify_one();
    return r->done;
  });
  return settled > 0;
}

absl::Status Batcher::ended() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

HostTimes Batcher::host_times() const {
  std::lock_guard lock(mutex_);
  return times_;
}

std::vector<SegmentCounters> Batcher::counters() const {
  std::lock_guard lock(mutex_);
  if (pipeline_ == nullptr) return {};
  return log_->Counters(pipeline_->counters());
}

}  // namespace trine
