// The OpenMP threads of the program. A run is one parallel region of the calling thread, so threads
// come from its pool: OMP_NUM_THREADS, places and nesting count. Trine's own barrier is used in it,
// since a worker that throws would leave the others at OpenMP's for ever.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "plugins/thread_team.h"

namespace trine {

class TeamRuns;

class OpenMpTeam : public ThreadTeam {
 public:
  // Returns whether this build has OpenMP.
  static bool IsBuilt();

  // Finds out the size of the team with a region. `threads` 0: as many as OpenMP gives the calling
  // thread. Returns UNIMPLEMENTED if this build has no OpenMP, and FAILED_PRECONDITION if OpenMP
  // gives fewer threads than asked for, or if the calling thread ran regions of a team before
  // fork().
  static absl::StatusOr<std::shared_ptr<ThreadTeam>> Create(uint32_t threads);

  const char* name() const override { return "openmp"; }
  uint32_t workers() const override;
  uint32_t processors() const override { return processors_; }
  // Returns FAILED_PRECONDITION if OpenMP gives fewer threads than the team has workers, as it does
  // inside of another parallel region.
  absl::Status Run(trine_worker_fn fn, void* arg) override;
  void Abandon() override;
  std::shared_ptr<ThreadTeam> MakeAnother() const override;

 private:
  OpenMpTeam(uint32_t workers, uint32_t processors);
  const uint32_t processors_;
  std::shared_ptr<TeamRuns> runs_;
};

}  // namespace trine
