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
};

class ThreadTeam {
 public:
  explicit ThreadTeam(const ThreadTeamOptions& options);
  ~ThreadTeam();  // joins, unless abandoned
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // May be less than asked for when the system refuses threads.
  uint32_t workers() const;

  // Runs fn(arg, w, workers) on every worker, the caller being 0, and returns when all are done.
  // Calls from different threads take turns. FAILED_PRECONDITION from inside a worker.
  absl::Status Run(trine_worker_fn fn, void* arg);

  // Inside Run, by all workers. Outside it does nothing.
  void Barrier();

  // Gives up threads that will never return: they keep what they use, the team runs nothing more.
  // For a host whose device watchdog has fired; Run may still be executing in another thread.
  void Abandon();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace trine

#endif  // TRINE_PLUGINS_THREAD_TEAM_H_
