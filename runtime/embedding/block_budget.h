// Divides the KV cache's blocks among concurrent calls that each evaluate several texts. A text
// begins only when all blocks that it needs are free, so that no text runs out of blocks half-way.
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

namespace trine {

class BlockBudget {
 public:
  explicit BlockBudget(int64_t blocks) : free_(blocks) {}
  BlockBudget(const BlockBudget&) = delete;
  BlockBudget& operator=(const BlockBudget&) = delete;

  // Takes the blocks of the first n texts, n as large as fits, and returns n. `sizes` has the
  // number of blocks of each text. Waits until n is at least 1. A caller that waits goes before
  // later callers, so that a long text gets its turn. No size may exceed the whole budget.
  size_t Take(std::span<const int64_t> sizes) {
    if (sizes.empty()) return 0;
    std::lock_guard<std::mutex> turn(turn_);
    std::unique_lock<std::mutex> lock(mutex_);
    given_back_.wait(lock, [&] { return sizes.front() <= free_; });
    size_t taken = 0;
    for (; taken < sizes.size() && sizes[taken] <= free_; ++taken) free_ -= sizes[taken];
    return taken;
  }
  void GiveBack(int64_t blocks) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_ += blocks;
    given_back_.notify_one();  // only one thread waits: the one with turn_
  }

 private:
  std::mutex turn_;  // held by the caller that waits for room
  std::mutex mutex_;
  std::condition_variable given_back_;
  int64_t free_;
};

}  // namespace trine
