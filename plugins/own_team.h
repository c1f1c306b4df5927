// Trine's own threads, which may be pinned. They are the default for two reasons: the host may be
// any program, whose own threads must keep their number and places; and a team in which a plugin
// hangs can be abandoned.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plugins/thread_team.h"

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

class OwnTeam : public ThreadTeam {
 public:
  // Starts the threads. The team is smaller than asked for if the system refuses threads.
  explicit OwnTeam(const ThreadTeamOptions& options);
  ~OwnTeam() override;  // joins the threads unless abandoned
  OwnTeam(const OwnTeam&) = delete;
  OwnTeam& operator=(const OwnTeam&) = delete;

  const char* name() const override { return "own"; }
  uint32_t workers() const override;
  uint32_t processors() const override { return options_.processors; }
  absl::Status Run(trine_worker_fn fn, void* arg) override;
  void Abandon() override;
  std::shared_ptr<ThreadTeam> MakeAnother() const override;

 private:
  struct State;
  ThreadTeamOptions options_;
  std::shared_ptr<State> state_;
};

}  // namespace trine
