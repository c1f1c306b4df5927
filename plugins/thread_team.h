// The pinned thread team of a process, lent to backends through trine_host: one parallel region per
// plan run, barriers between its ops. Own threads rather than an OpenMP pool, because the host may
// be anybody's program: its own OpenMP threads keep their number and their places, and a team in
// which a plugin hangs can be left behind.
#ifndef TRINE_PLUGINS_THREAD_TEAM_H_
#define TRINE_PLUGINS_THREAD_TEAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "trine/backend.h"

namespace trine {

struct ThreadTeamOptions {
  uint32_t workers = 1;
  // OS processor numbers; worker i > 0 is bound to cpus[i % size]. Empty: not bound. Worker 0 is
  // whoever calls Run, and is never moved.
  std::vector<int> cpus;
  // How many processors the team can count on; 0: as many as the calling thread may run on. With
  // fewer than workers, nobody spins: whoever waits makes room for those waited for.
  uint32_t processors = 0;
};

class ThreadTeam {
 public:
  explicit ThreadTeam(const ThreadTeamOptions& options);
  ~ThreadTeam();  // joins, unless abandoned; nothing else may be under way on the object
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // May be less than asked for when the system refuses threads.
  uint32_t workers() const;

  // Runs fn(arg, w, workers) on every worker, the caller being 0, and returns when all are done.
  // Calls from different threads take turns.
  //   FAILED_PRECONDITION  called from inside a worker, of any team; fn did not run
  //   ABORTED              the team was abandoned; fn did not run
  //   INTERNAL             fn threw on some worker: its breach of the ABI, the team goes on
  absl::Status Run(trine_worker_fn fn, void* arg);

  // By all workers of the calling worker's team, whichever that is. Outside Run it does nothing.
  static void Barrier();

  // Gives up threads that may never return: they keep what they use, and the team starts nothing
  // more. Callers waiting for their turn get ABORTED; a Run under way goes on as far as it can.
  void Abandon();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace trine

#endif  // TRINE_PLUGINS_THREAD_TEAM_H_
