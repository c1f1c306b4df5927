#include "plugins/host_services.h"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>

namespace trine {

namespace {

// Why the last parallel_run of this thread that failed did so.
thread_local std::string why_not_run;

}  // namespace

HostServices::HostServices(const ThreadTeamOptions& team, LogSink log)
    : HostServices(std::move(log), std::make_shared<OwnTeam>(team)) {}

HostServices::HostServices(LogSink log, std::shared_ptr<ThreadTeam> team)
    : team_(std::move(team)),
      log_(std::move(log)),
      table_{.struct_size = sizeof(trine_host),
             .abi_version = TRINE_ABI_VERSION,
             .worker_count = team_->workers(),
             .reserved = 0,
             .self = this,
             .log = Log,
             .parallel_run = ParallelRun,
             .barrier = Barrier,
             .profiling = &profiling_,
             .op_done = OpDone} {}

std::string HostServices::TakeWhyNotRun() { return std::exchange(why_not_run, std::string()); }

std::shared_ptr<ThreadTeam> HostServices::Team() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return team_;
}

void HostServices::ReplaceTeam() {
  std::shared_ptr<ThreadTeam> fresh = Team()->MakeAnother();
  std::shared_ptr<ThreadTeam> old;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    old = std::exchange(team_, std::move(fresh));
  }
  old->Abandon();
}

void HostServices::Log(void* self, uint32_t level, const char* message) {
  if (message != nullptr) static_cast<HostServices*>(self)->Say(level, message);
}

void HostServices::Say(uint32_t level, const std::string& message) const {
  const std::shared_lock lock(log_mutex_);
  if (log_) log_(level, message);
}

void HostServices::Silence() {
  const std::unique_lock lock(log_mutex_);
  log_ = nullptr;
}

trine_status HostServices::ParallelRun(void* self, trine_worker_fn fn, void* arg) {
  auto* services = static_cast<HostServices*>(self);
  for (;;) {
    const std::shared_ptr<ThreadTeam> team = services->Team();
    const absl::Status status = team->Run(fn, arg);
    // The team was abandoned before it ran fn. Runs fn on the new team.
    if (status.code() == absl::StatusCode::kAborted && team != services->Team()) continue;
    why_not_run = status.ok() ? std::string() : std::string(status.message());
    return static_cast<trine_status>(status.code());
  }
}

void HostServices::Barrier(void*) { ThreadTeam::Barrier(); }

void HostServices::OpDone(void* self, const char* name, uint64_t nanoseconds) {
  auto* services = static_cast<HostServices*>(self);
  if (name == nullptr) return;
  std::lock_guard<std::mutex> lock(services->op_times_mutex_);
  auto found = services->op_times_.find(std::string_view(name));
  // Copies the name: the text belongs to the plugin, which may be closed before StopOpTimes.
  if (found == services->op_times_.end()) {
    found = services->op_times_.emplace(name, OpTime{name, 0, 0}).first;
  }
  ++found->second.calls;
  found->second.ns += nanoseconds;
}

void HostServices::StartOpTimes() {
  std::lock_guard<std::mutex> lock(op_times_mutex_);
  op_times_.clear();
  std::atomic_ref(profiling_).store(1, std::memory_order_relaxed);
}

std::vector<OpTime> HostServices::StopOpTimes() {
  std::atomic_ref(profiling_).store(0, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(op_times_mutex_);
  std::vector<OpTime> times;
  for (auto& [name, time] : op_times_) times.push_back(std::move(time));
  op_times_.clear();
  std::stable_sort(times.begin(), times.end(),
                   [](const OpTime& a, const OpTime& b) { return a.ns > b.ns; });
  return times;
}

}  // namespace trine
