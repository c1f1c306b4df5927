// Runs a plan's steps on the host's team. Their operands are already resolved for the run.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/access.h"
#include "backends/cpu/op_run.h"
#include "kernels/reference/view.h"

namespace trine::cpu {

// Keeps count of how much of a step's work is taken. Each worker has a contiguous share, the same
// in each run, so that what it reads stays in its caches. It takes portions from the front of its
// share, then helps the others with theirs.
class WorkCursors {
 public:
  using Range = reference::Range;

  explicit WorkCursors(uint32_t workers)
      : workers_(workers), cursors_(std::make_unique<Cursor[]>(workers)) {}

  uint32_t workers() const { return workers_; }

  // Calls work(Range) for portions of at most `portion` of [0, total) until all units are taken.
  // All workers together work each unit once. `turn` must be one more than at the last use: a new
  // turn voids the cursors, so that they need no reset. All workers must take part in every turn,
  // and the caller's barrier must order the turns.
  template <class Work>
  void ForEachPortion(uint32_t turn, uint32_t worker, int64_t total, int64_t portion, Work work) {
    for (uint32_t i = 0; i < workers_; ++i) {
      const uint32_t whose = worker + i < workers_ ? worker + i : worker + i - workers_;
      const Range share = ShareOf(whose, total);
      for (Range taken; Take(turn, whose, share, portion, &taken);) work(taken);
    }
  }

  Range ShareOf(uint32_t worker, int64_t total) const {
    return {total * worker / workers_, total * (int64_t{worker} + 1) / workers_};
  }

 private:
  // Processors fetch cache lines in pairs.
  static constexpr size_t kApart = 128;
  // The turn in the upper half, how much of the share is taken in the lower half.
  struct alignas(kApart) Cursor {
    std::atomic<uint64_t> value{0};
  };

  bool Take(uint32_t turn, uint32_t whose, Range share, int64_t portion, Range* taken) {
    std::atomic<uint64_t>& cursor = cursors_[whose].value;
    uint64_t seen = cursor.load(std::memory_order_relaxed);
    for (;;) {
      const bool fresh = static_cast<uint32_t>(seen >> 32) != turn;
      const int64_t begin = share.begin + (fresh ? 0 : static_cast<int64_t>(seen & UINT32_MAX));
      const int64_t end = begin + portion < share.end ? begin + portion : share.end;
      if (begin >= share.end && !fresh) return false;
      const uint64_t next =
          uint64_t{turn} << 32 | static_cast<uint64_t>(end > begin ? end - share.begin : 0);
      // Relaxed: units depend only on what the barrier before the step has ordered.
      if (cursor.compare_exchange_weak(seen, next, std::memory_order_relaxed)) {
        *taken = {begin, end};
        return begin < end;
      }
    }
  }

  uint32_t workers_;
  std::unique_ptr<Cursor[]> cursors_;
};

// A call of the schedule with its function and its operands.
struct BoundCall {
  OpFunction function = nullptr;  // runs a share of the op, by the chain's split
  OpCall call;                    // points into the plan's views
  const char* name = nullptr;
  uint64_t timed_ns = 0;  // worker 0's time in the current step, if the run is timed
};

// A chain of the schedule with its bound calls.
struct BoundChain {
  Split split = Split::kShares;
  int64_t columns = 0;            // kColumns: number of parts
  const int64_t* rows = nullptr;  // kRows: number of parts, resolved for the run
  uint64_t weight_bytes = 0;      // bytes of the weights that the calls' matrix products read
  std::vector<BoundCall> calls;

  // Returns the number of parts that the work has under this split.
  int64_t Parts(uint32_t workers) const;
};

struct BoundStep {
  std::vector<BoundChain> chains;
  bool big = false;
};

// Owns a plan's bound steps and runs them. One run at a time.
class TeamRun {
 public:
  TeamRun(const trine_host& host, std::vector<BoundStep> steps);

  // Runs all steps in one parallel region. Returns the host's status if the host can't provide one.
  trine_status Run();

 private:
  template <bool kTimed>
  static void Work(void* self, uint32_t worker, uint32_t workers);

  const trine_host& host_;
  std::vector<BoundStep> steps_;
  WorkCursors cursors_;
  uint32_t turn_ = 0;       // how many turns of the cursors have been used so far
  uint32_t big_steps_ = 0;  // how many turns one run uses
};

}  // namespace trine::cpu
