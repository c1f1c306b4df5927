// Threads that the program that embeds Trine lends through a callback. Trine has its own barrier
// for them, and checks what the callback does: a mistake becomes a status, and never a wait without
// end or a wrong result.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "plugins/thread_team.h"

namespace trine {

// The threads of the embedding program.
struct HostThreads {
  using Work = void (*)(void* arg, uint32_t worker);

  uint32_t workers = 0;
  // Calls work(arg, w) once for each w below `workers`, all of them at the same time, w = 0 on the
  // calling thread. Returns 0 when all calls have returned. Returns another value, and has not
  // called work, if the threads can't be had.
  std::function<int32_t(Work work, void* arg, uint32_t workers)> parallel_run;
  // How long a worker waits for the others to begin. Then the run fails.
  std::chrono::milliseconds begin_limit = std::chrono::seconds(10);
};

class CallbackTeam : public ThreadTeam {
 public:
  // Tries the callback with work that does nothing. Returns INVALID_ARGUMENT without workers or
  // callback, and FAILED_PRECONDITION, with the reason, if the callback does not work. `processors`
  // is how many the threads run on, if that is known.
  static absl::StatusOr<std::shared_ptr<ThreadTeam>> Create(const HostThreads& threads,
                                                            uint32_t processors);

  const char* name() const override { return "host"; }
  uint32_t workers() const override;
  uint32_t processors() const override;
  absl::Status Run(trine_worker_fn fn, void* arg) override;
  void Abandon() override;
  std::shared_ptr<ThreadTeam> MakeAnother() const override;

 private:
  struct State;
  CallbackTeam(const HostThreads& threads, uint32_t processors);
  std::shared_ptr<State> state_;
};

}  // namespace trine
