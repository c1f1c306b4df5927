// Chooses the thread team that computes for an engine: Trine's own threads, OpenMP's, or threads
// that the embedding program lends. The choice changes no result.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "detect/machine.h"
#include "plugins/callback_team.h"
#include "plugins/host_services.h"
#include "plugins/thread_team.h"

namespace trine {

enum class TeamKind {
  kDefault,  // what TRINE_TEAM says; else Trine's own
  kOwn,
  kOpenMp,
};

struct TeamRequest {
  TeamKind kind = TeamKind::kDefault;
  std::optional<HostThreads> host;  // these threads, whatever `kind` says
};

// Returns the kind for "own" or "openmp". Returns INVALID_ARGUMENT, which lists these names, for
// any other name.
absl::StatusOr<TeamKind> ParseTeamKind(const std::string& name);

// Returns the request with TRINE_TEAM in place of kDefault, or with kOwn if the variable is not set
// or `use_environment` is false. Returns an error if the variable has another value, if this build
// has no such team, or if `threads` (0: not said) is not the number of threads that are lent.
absl::StatusOr<TeamRequest> ResolveTeam(const TeamRequest& request, uint32_t threads,
                                        bool use_environment);

// Returns the default number of threads of Trine's own: one per core that this process may use.
uint32_t DefaultThreads(const detect::CpuInfo& cpu);

// Makes the team of a resolved request. `threads` 0: DefaultThreads, or as many as OpenMP gives.
// Call it on the thread that will compute: OpenMP's settings belong to a thread.
absl::StatusOr<std::shared_ptr<ThreadTeam>> MakeTeam(const TeamRequest& request, uint32_t threads,
                                                     const detect::CpuInfo& cpu,
                                                     const LogSink& log);

// Makes a team of Trine's own threads, which are bound to processors where TRINE_PIN or the machine
// asks for it.
std::shared_ptr<ThreadTeam> MakeOwnTeam(uint32_t threads, const detect::CpuInfo& cpu,
                                        const LogSink& log);

}  // namespace trine
