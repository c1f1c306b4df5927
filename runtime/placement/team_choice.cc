#include "runtime/placement/team_choice.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "plugins/openmp_team.h"
#include "plugins/own_team.h"
#include "runtime/base/invalid.h"
#include "runtime/placement/worker_cpus.h"

namespace trine {
namespace {

constexpr char kVariable[] = "TRINE_TEAM";

bool BindsWorkers(const detect::CpuInfo& cpu, const LogSink& log) {
  const char* asked = std::getenv("TRINE_PIN");
  const std::string_view pin = asked != nullptr ? asked : "";
  if (pin == "0" || pin == "1") return pin == "1";
  if (!pin.empty() && log) {
    log(TRINE_LOG_WARNING,
        absl::StrCat("TRINE_PIN=", asked, " is neither 0 nor 1: it is not used"));
  }
  // Binds workers only if some memory is nearer to some processors, because bound workers can't
  // move away from processors that other processes use.
  return cpu.topology.numa_nodes.size() > 1;
}

absl::Status CheckLent(const HostThreads& host, uint32_t threads) {
  if (host.workers == 0 || !host.parallel_run) {
    return absl::InvalidArgumentError(
        "the program lends threads, and does not say how many, or how to run them");
  }
  if (threads == 0 || threads == host.workers) return absl::OkStatus();
  return Invalid("the program lends ", host.workers, " threads, and asks for ", threads);
}

}  // namespace

absl::StatusOr<TeamKind> ParseTeamKind(const std::string& name) {
  if (name == "own") return TeamKind::kOwn;
  if (name == "openmp") return TeamKind::kOpenMp;
  return Invalid("'", name, "' is no team of threads: own or openmp");
}

absl::StatusOr<TeamRequest> ResolveTeam(const TeamRequest& request, uint32_t threads,
                                        bool use_environment) {
  TeamRequest resolved = request;
  if (resolved.host) {
    if (absl::Status s = CheckLent(*resolved.host, threads); !s.ok()) return s;
    return resolved;
  }
  if (resolved.kind == TeamKind::kDefault) {
    const char* variable = use_environment ? std::getenv(kVariable) : nullptr;
    const std::string name = variable != nullptr && *variable != '\0' ? variable : "own";
    const auto kind = ParseTeamKind(name);
    if (!kind.ok()) return Invalid(kVariable, ": ", kind.status().message());
    resolved.kind = *kind;
  }
  if (resolved.kind == TeamKind::kOpenMp && !OpenMpTeam::IsBuilt()) {
    return OpenMpTeam::Create(threads).status();
  }
  return resolved;
}

uint32_t DefaultThreads(const detect::CpuInfo& cpu) {
  const uint32_t processors = UsableProcessors(cpu);
  if (cpu.topology.cores <= 0) return processors;
  return std::min(processors, static_cast<uint32_t>(cpu.topology.cores));
}

std::shared_ptr<ThreadTeam> MakeOwnTeam(uint32_t threads, const detect::CpuInfo& cpu,
                                        const LogSink& log) {
  ThreadTeamOptions options;
  options.workers = threads != 0 ? threads : DefaultThreads(cpu);
  options.processors = UsableProcessors(cpu);
  if (BindsWorkers(cpu, log)) options.cpus = WorkerCpus(cpu, options.workers);
  return std::make_shared<OwnTeam>(options);
}

absl::StatusOr<std::shared_ptr<ThreadTeam>> MakeTeam(const TeamRequest& request, uint32_t threads,
                                                     const detect::CpuInfo& cpu,
                                                     const LogSink& log) {
  // The lent threads may be anywhere: they are the program's. So their number is all that is known.
  if (request.host) return CallbackTeam::Create(*request.host, /*processors=*/0);
  if (request.kind == TeamKind::kOpenMp) return OpenMpTeam::Create(threads);
  return MakeOwnTeam(threads, cpu, log);
}

}  // namespace trine
