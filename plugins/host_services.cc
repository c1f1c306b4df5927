#include "plugins/host_services.h"

#include <utility>

namespace trine {

HostServices::HostServices(const ThreadTeamOptions& team, LogSink log)
    : team_(std::make_unique<ThreadTeam>(team)),
      log_(std::move(log)),
      table_{.struct_size = sizeof(trine_host),
             .abi_version = TRINE_ABI_VERSION,
             .worker_count = team_->workers(),
             .reserved = 0,
             .self = this,
             .log = Log,
             .parallel_run = ParallelRun,
             .barrier = Barrier} {}

void HostServices::Log(void* self, uint32_t level, const char* message) {
  auto* services = static_cast<HostServices*>(self);
  if (services->log_ && message != nullptr) services->log_(level, message);
}

trine_status HostServices::ParallelRun(void* self, trine_worker_fn fn, void* arg) {
  return static_cast<trine_status>(static_cast<HostServices*>(self)->team_->Run(fn, arg).code());
}

void HostServices::Barrier(void* self) { static_cast<HostServices*>(self)->team_->Barrier(); }

}  // namespace trine
