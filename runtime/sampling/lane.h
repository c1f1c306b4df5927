// Lane: a small pool of threads for the CPU's work between two tokens (sampling, detokenising) of
// several sequences at once. The threads are called trine-lane-0, trine-lane-1, ... and sleep in
// between; they are not the pinned team that runs kernels.
//
// One lane per engine, handed to whoever needs it. Run may be called by any thread; calls take
// turns. A task may call Run: it then runs inline.

#ifndef TRINE_RUNTIME_SAMPLING_LANE_H_
#define TRINE_RUNTIME_SAMPLING_LANE_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace trine {

inline constexpr int kMaxLaneThreads = 256;

// TRINE_CPU_LANE_THREADS, or without it the processors this process may use less two, at least 1.
// INVALID_ARGUMENT when the variable is not a number from 1 to kMaxLaneThreads.
absl::StatusOr<int> LaneThreadsFromEnvironment();

class Lane {
 public:
  // `threads` from 1 to kMaxLaneThreads, beside the thread that calls Run.
  static absl::StatusOr<std::unique_ptr<Lane>> Create(int threads);
  ~Lane();  // joins; no Run may be under way
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // May be less than asked for when the system refuses threads.
  int threads() const;

  // Calls task(0) .. task(n - 1), each once, in any order, on the pool and on the calling thread;
  // returns when all are done. What the tasks wrote is then visible. Allocates nothing. A task must
  // not throw.
  void Run(int n, absl::FunctionRef<void(int)> task);

  // The same, on the calling thread alone unless the pool pays: waking threads costs more than a
  // little work saves. `tokens_each` is the size of one task, in vocabulary entries to look at.
  void RunSampling(int n, int32_t tokens_each, absl::FunctionRef<void(int)> task);

  // Whether RunSampling would use the pool. The bound is measured: docs/sampling.md.
  static bool PoolPays(int n, int32_t tokens_each);

 private:
  struct State;
  explicit Lane(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_SAMPLING_LANE_H_
