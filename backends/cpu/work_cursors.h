// Who has taken how much of a step's work. Each worker has a contiguous share, the same at each
// run, so that what it reads stays in its caches; it takes portions of it from the front, and when
// it is done helps the others with theirs.
#ifndef TRINE_BACKENDS_CPU_WORK_CURSORS_H_
#define TRINE_BACKENDS_CPU_WORK_CURSORS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/reference/view.h"

namespace trine::cpu {

class WorkCursors {
 public:
  using Range = reference::Range;

  explicit WorkCursors(uint32_t workers)
      : workers_(workers), cursors_(std::make_unique<Cursor[]>(workers)) {}

  uint32_t workers() const { return workers_; }

  // Calls work(Range) for portions of at most `portion` of [0, total), until nothing is left that
  // nobody has taken. Of all workers together each unit is worked once. `turn` is one more than at
  // the last use: it makes what the cursors then said void, so that nobody has to reset them, and
  // all workers take part in every turn. What orders turns is the caller's barrier.
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
  // Processors fetch lines in pairs.
  static constexpr size_t kApart = 128;
  // The turn, then how much of the share is taken.
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
      // Units depend on nothing but what the barrier before the step has ordered.
      if (cursor.compare_exchange_weak(seen, next, std::memory_order_relaxed)) {
        *taken = {begin, end};
        return begin < end;
      }
    }
  }

  uint32_t workers_;
  std::unique_ptr<Cursor[]> cursors_;
};

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_WORK_CURSORS_H_
