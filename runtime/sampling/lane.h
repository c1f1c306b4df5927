// A small pool of threads for the CPU's work between two tokens: sampling and detokenising, for
// several sequences at once. The threads are called trine-lane-0, trine-lane-1, ... and sleep while
// there is no such work. They are not the pinned team that runs kernels.
//
// An engine has one lane. Any thread may call Run; calls take turns. A task that calls Run does all
// the work on its own thread.

#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace trine {

inline constexpr int kMaxLaneThreads = 256;

// Returns the value of TRINE_CPU_LANE_THREADS. If it is not set, returns the number of processors
// that this process may use, minus two, but at least 1. Returns INVALID_ARGUMENT if the variable is
// no number from 1 to kMaxLaneThreads.
absl::StatusOr<int> LaneThreadsFromEnvironment();

class Lane {
 public:
  // REQUIRES: 1 <= threads <= kMaxLaneThreads. The thread that calls Run is not counted.
  static absl::StatusOr<std::unique_ptr<Lane>> Create(int threads);
  ~Lane();  // joins the threads; no Run may be active
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Returns the number of threads. It is less than requested if the system refused some.
  int threads() const;

  // Calls task(0) .. task(n - 1), each once, in any order, on the pool and on the calling thread.
  // Returns when all are done and their writes are visible. Allocates nothing. Tasks must not
  // throw.
  void Run(int n, absl::FunctionRef<void(int)> task);

  // Does what Run does, but on the calling thread alone if there is little work: waking threads
  // would cost more than it saves. `tokens_each` is the number of vocabulary entries that one task
  // looks at.
  void RunSampling(int n, int32_t tokens_each, absl::FunctionRef<void(int)> task);

  // Returns whether RunSampling would use the pool. docs/sampling.md has the measurements behind
  // this bound.
  static bool PoolPays(int n, int32_t tokens_each);

 private:
  struct State;
  explicit Lane(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace trine
