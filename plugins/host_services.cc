#include "plugins/host_services.h"

#include <utility>

namespace trine {

HostServices::HostServices(const ThreadTeamOptions& team, LogSink log)
    : options_(team),
      team_(std::make_shared<ThreadTeam>(team)),
      log_(std::move(log)),
      table_{.struct_size = sizeof(trine_host),
             .abi_version = TRINE_ABI_VERSION,
             .worker_count = team_->workers(),
             .reserved = 0,
             .self = this,
             .log = Log,
             .parallel_run = ParallelRun,
             .barrier = Barrier} {
  options_.workers = team_->workers();
}

std::shared_ptr<ThreadTeam> HostServices::team() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return team_;
}

void HostServices::ReplaceTeam() {
  auto fresh = std::make_shared<ThreadTeam>(options_);
  std::shared_ptr<ThreadTeam> old;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    old = std::exchange(team_, std::move(fresh));
  }
  old->Abandon();
}

void HostServices::Log(void* self, uint32_t level, const char* message) {
  auto* services = static_cast<HostServices*>(self);
  if (services->log_ && message != nullptr) services->log_(level, message);
}

trine_status HostServices::ParallelRun(void* self, trine_worker_fn fn, void* arg) {
  auto* services = static_cast<HostServices*>(self);
  for (;;) {
    const std::shared_ptr<ThreadTeam> team = services->team();
    const absl::Status status = team->Run(fn, arg);
    // Abandoned before our turn came: fn has not run, and there is a new team.
    if (status.code() == absl::StatusCode::kAborted && team != services->team()) continue;
    return static_cast<trine_status>(status.code());
  }
}

void HostServices::Barrier(void*) { ThreadTeam::Barrier(); }

}  // namespace trine
