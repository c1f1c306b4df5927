// Runs functions on a team of pinned threads. A process has one team and lends it to backends
// through trine_host: a plan's run is one parallel region, with barriers between its ops. The team
// is no OpenMP pool for two reasons: the host may be any program, whose own OpenMP threads must
// keep their number and places; and a team in which a plugin hangs can be abandoned.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "trine/backend.h"

namespace trine {

struct ThreadTeamOptions {
  uint32_t workers = 1;
  // OS processor numbers. Worker i > 0 is bound to cpus[i % size]; empty: no worker is bound.
  // Worker 0 is the thread that calls Run, which is never bound.
  std::vector<int> cpus;
  // How many processors the team can count on; 0: all that the calling thread may run on. With
  // fewer processors than workers no worker spins, so that other threads get the processors.
  uint32_t processors = 0;
};

class ThreadTeam {
 public:
  explicit ThreadTeam(const ThreadTeamOptions& options);
  ~ThreadTeam();  // joins the threads unless abandoned; no call may be in flight
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // Returns the size of the team, which is smaller than asked for if the system refused threads.
  uint32_t workers() const;

  // Runs fn(arg, w, workers) on every worker, the caller being 0, and returns when all are done.
  // Calls from different threads take turns.
  //   FAILED_PRECONDITION  called from inside a worker of any team; fn did not run
  //   ABORTED              the team was abandoned; fn did not run
  //   INTERNAL             fn threw on some worker, a breach of the ABI; the team stays usable
  absl::Status Run(trine_worker_fn fn, void* arg);

  // Waits for all workers of the calling worker's team. Does nothing outside of Run.
  static void Barrier();

  // Gives up threads that may never return. They keep the memory that they use, and the team starts
  // no further run. Callers waiting for their turn get ABORTED; a Run in flight continues as far as
  // it can.
  void Abandon();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace trine
