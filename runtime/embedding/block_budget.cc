#include "runtime/embedding/block_budget.h"

namespace trine {

size_t BlockBudget::Take(std::span<const int64_t> sizes) {
  if (sizes.empty()) return 0;
  std::lock_guard<std::mutex> turn(turn_);
  std::unique_lock<std::mutex> lock(mutex_);
  given_back_.wait(lock, [&] { return sizes.front() <= free_; });
  size_t taken = 0;
  for (; taken < sizes.size() && sizes[taken] <= free_; ++taken) free_ -= sizes[taken];
  return taken;
}

void BlockBudget::GiveBack(int64_t blocks) {
  std::lock_guard<std::mutex> lock(mutex_);
  free_ += blocks;
  given_back_.notify_one();  // only the holder of the turn waits
}

}  // namespace trine
