// The interface of thread teams, which compute what plugins ask for. A backend borrows the host's
// team through trine_host: a plan's run is one parallel region, with barriers between its ops.
// Which team it is makes no difference to any result:
//
//   OwnTeam       threads of Trine's own (the default)
//   OpenMpTeam    the OpenMP threads of the program
//   CallbackTeam  threads that the embedding program lends through a callback
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "trine/backend.h"

namespace trine {

class ThreadTeam {
 public:
  virtual ~ThreadTeam() = default;  // no call may be in flight, unless the team was abandoned

  // Returns "own", "openmp" or "host".
  virtual const char* name() const = 0;
  // Returns the size of the team, at least 1, which never changes.
  virtual uint32_t workers() const = 0;
  // Returns the number of processors that the team can count on; 0: not known.
  virtual uint32_t processors() const = 0;

  // Runs fn(arg, w, workers) on every worker, the caller being 0, and returns when all are done.
  // All workers run at the same time. Calls from different threads take turns.
  //   FAILED_PRECONDITION  called from inside a worker of any team, or the threads can't be had at
  //                        present: fn did not run
  //   ABORTED              the team was abandoned; fn did not run
  //   INTERNAL             fn threw on some worker, a breach of the ABI; the team stays usable
  virtual absl::Status Run(trine_worker_fn fn, void* arg) = 0;

  // Gives up threads that may never return. They keep the memory that they use, and the team starts
  // no further run. Callers waiting for their turn get ABORTED; a Run in flight continues as far as
  // it can.
  virtual void Abandon() = 0;
  // Makes a team of the same kind and size, to take the place of this one when it is abandoned.
  virtual std::shared_ptr<ThreadTeam> MakeAnother() const = 0;

  // Waits for all workers of the calling worker's team. Does nothing outside of Run.
  static void Barrier();
};

}  // namespace trine
