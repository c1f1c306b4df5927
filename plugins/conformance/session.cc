#include "plugins/conformance/session.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine::conformance {
namespace {

// The host whose worker function the calling thread runs; null outside of one.
thread_local const ObservingHost* inside = nullptr;

std::function<void()> sign_of_life;

}  // namespace

std::unique_ptr<Session> Session::Open(Trial& trial, Runner& runner, const trine_plugin& table,
                                       uint32_t device_index, uint32_t workers,
                                       const std::string& options) {
  std::unique_ptr<Session> session(new Session(runner, table, workers));
  Session& s = *session;
  Answer answer =
      s.Call(trial, "open", &trine_plugin::open, s.host_->get(), options.c_str(), &s.backend_);
  if (!trial.ExpectOk(answer, "open") ||
      !trial.Expect(s.backend_ != nullptr, "open returned OK and no backend")) {
    return nullptr;
  }
  s.info_.struct_size = sizeof(s.info_);
  answer =
      s.Call(trial, "device_info", &trine_plugin::device_info, s.backend_, device_index, &s.info_);
  if (!trial.ExpectOk(answer, "device_info")) return nullptr;
  answer = s.Call(trial, "device_open", &trine_plugin::device_open, s.backend_, device_index,
                  &s.device_);
  if (!trial.ExpectOk(answer, "device_open") ||
      !trial.Expect(s.device_ != nullptr, "device_open returned OK and no device")) {
    return nullptr;
  }
  return session;
}

Session::~Session() {
  if (device_ != nullptr) CallVoid("device_close", [&] { table_.device_close(device_); });
  if (backend_ != nullptr) CallVoid("close", [&] { table_.close(backend_); });
}

BufferPtr Session::Own(trine_buffer* buffer) {
  return BufferPtr(
      buffer, [this](trine_buffer* b) { CallVoid("buffer_free", [&] { table_.buffer_free(b); }); });
}

Answer Session::TryAlloc(Trial& trial, uint64_t bytes, uint32_t memory, BufferPtr* out) {
  trine_buffer_desc desc{sizeof(desc), memory, bytes};
  trine_buffer* buffer = nullptr;
  Answer answer = Call(trial, "buffer_alloc", &trine_plugin::buffer_alloc, device_, &desc, &buffer);
  if (answer.Ok()) {
    trial.Expect(buffer != nullptr, "buffer_alloc returned OK and no buffer");
    *out = Own(buffer);
  }
  return answer;
}

BufferPtr Session::Alloc(Trial& trial, uint64_t bytes, uint32_t memory) {
  BufferPtr buffer;
  trial.ExpectOk(TryAlloc(trial, bytes, memory, &buffer),
                 "buffer_alloc of " + std::to_string(bytes) + " bytes");
  return buffer;
}

TimelinePtr Session::NewTimeline(Trial& trial, uint64_t initial) {
  trine_timeline* timeline = nullptr;
  const Answer answer =
      Call(trial, "timeline_create", &trine_plugin::timeline_create, device_, initial, &timeline);
  if (!trial.ExpectOk(answer, "timeline_create") ||
      !trial.Expect(timeline != nullptr, "timeline_create returned OK and no timeline")) {
    return nullptr;
  }
  return TimelinePtr(timeline, [this](trine_timeline* t) {
    CallVoid("timeline_destroy", [&] { table_.timeline_destroy(t); });
  });
}

Answer Session::CreatePlan(Trial& trial, const trine_plan_desc& desc, PlanPtr* out) {
  trine_plan* plan = nullptr;
  Answer answer = Call(trial, "plan_create", &trine_plugin::plan_create, device_, &desc, &plan);
  if (answer.Ok() && trial.Expect(plan != nullptr, "plan_create returned OK and no plan")) {
    *out = PlanPtr(
        plan, [this](trine_plan* p) { CallVoid("plan_destroy", [&] { table_.plan_destroy(p); }); });
  }
  return answer;
}

void Session::ExpectNoPlan(Trial& trial, const trine_graph* graph,
                           const std::vector<trine_binding>& bindings, const std::string& what) {
  trine_plan_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.n_bindings = static_cast<uint32_t>(bindings.size());
  desc.binding_stride = sizeof(trine_binding);
  desc.graph = graph;
  desc.bindings = bindings.data();
  PlanPtr plan;
  trial.ExpectRefused(CreatePlan(trial, desc, &plan), what);
}

void Session::ReportBreaches(Trial& trial) {
  for (const std::string& breach : host_->TakeBreaches()) trial.FailFirst(breach);
}

Sessions::Sessions(Runner& runner, const trine_plugin& table, const KitOptions& options,
                   uint32_t device)
    : runner_(runner), table_(table), options_(options), device_(device), worker_counts_{1} {
  for (uint32_t count : {2u, 3u, 5u}) {
    if (count <= options.workers) worker_counts_.push_back(count);
  }
}

Session* Sessions::Get(Trial& trial, uint32_t workers) {
  std::unique_ptr<Session>& session = open_[workers];
  if (session == nullptr) {
    session = Session::Open(trial, runner_, table_, device_, workers, options_.options);
  }
  return session.get();
}

void OnSignOfLife(std::function<void()> sign) { sign_of_life = std::move(sign); }

ObservingHost::ObservingHost(uint32_t workers) {
  host_.struct_size = sizeof(host_);
  host_.abi_version = TRINE_ABI_VERSION;
  host_.worker_count = workers;
  host_.self = this;
  host_.log = &Log;
  host_.parallel_run = &ParallelRun;
  host_.barrier = &Barrier;
  host_.profiling = &profiling_;
  host_.op_done = &OpDone;
  for (uint32_t w = 1; w < workers; ++w) threads_.emplace_back([this, w] { WorkerLoop(w); });
}

ObservingHost::~ObservingHost() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::vector<std::string> ObservingHost::TakeBreaches() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(breaches_, {});
}

void ObservingHost::NoteBreach(const std::string& what) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (breaches_.size() < 16) breaches_.push_back(what);
}

void ObservingHost::Log(void* self, uint32_t level, const char* message) {
  if (sign_of_life) sign_of_life();
  auto* host = static_cast<ObservingHost*>(self);
  if (level < TRINE_LOG_DEBUG || level > TRINE_LOG_ERROR) {
    host->NoteBreach(absl::StrCat("logged with level ", level, ", which is no level"));
  }
  if (message == nullptr) host->NoteBreach("logged a null message");
}

trine_status ObservingHost::ParallelRun(void* self, trine_worker_fn fn, void* arg) {
  auto* host = static_cast<ObservingHost*>(self);
  if (inside == host) {
    host->NoteBreach("called parallel_run from inside parallel_run");
    return TRINE_FAILED_PRECONDITION;
  }
  if (host->refuse_) {
    ++host->refused_runs_;
    return TRINE_RESOURCE_EXHAUSTED;
  }
  std::lock_guard<std::mutex> one_at_a_time(host->run_mutex_);
  {
    std::lock_guard<std::mutex> lock(host->mutex_);
    host->fn_ = fn;
    host->arg_ = arg;
    host->running_ = host->workers();
    host->at_barrier_ = 0;
    host->broken_ = false;
    ++host->generation_;
  }
  host->wake_.notify_all();
  host->Work(0);
  std::unique_lock<std::mutex> lock(host->mutex_);
  host->done_.wait(lock, [host] { return host->running_ == 0; });
  return host->broken_ ? TRINE_INTERNAL : TRINE_OK;
}

void ObservingHost::Barrier(void* self) {
  auto* host = static_cast<ObservingHost*>(self);
  if (inside != host) {
    host->NoteBreach("called barrier outside of parallel_run");
    return;
  }
  std::unique_lock<std::mutex> lock(host->mutex_);
  const uint64_t mine = host->barrier_generation_;
  if (++host->at_barrier_ == host->workers()) {
    host->at_barrier_ = 0;
    ++host->barrier_generation_;
    host->barrier_.notify_all();
    return;
  }
  host->barrier_.wait(lock, [&] { return host->barrier_generation_ != mine || host->broken_; });
}

void ObservingHost::OpDone(void* self, const char*, uint64_t) {
  static_cast<ObservingHost*>(self)->NoteBreach("called op_done though profiling is 0");
}

void ObservingHost::WorkerLoop(uint32_t worker) {
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
    }
    Work(worker);
  }
}

void ObservingHost::Work(uint32_t worker) {
  inside = this;
  bool threw = false;
  if (const Start start = start_; start != Start::kTogether) {
    const uint32_t turn = start == Start::kFirstFirst ? worker : workers() - 1 - worker;
    std::this_thread::sleep_for(turn * std::chrono::milliseconds(3));
  }
  try {
    fn_(arg_, worker, workers());
  } catch (...) {
    threw = true;
    NoteBreach("threw an exception across the ABI from a worker function of parallel_run");
  }
  inside = nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  broken_ |= threw;
  if (threw) barrier_.notify_all();
  if (--running_ == 0) done_.notify_all();
}

}  // namespace trine::conformance
