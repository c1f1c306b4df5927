// Shares the KV cache's blocks out among calls that each bring several texts: a text begins when
// the blocks it will need are there, so that none runs out half-way. Thread-safe.
#ifndef TRINE_RUNTIME_EMBEDDING_BLOCK_BUDGET_H_
#define TRINE_RUNTIME_EMBEDDING_BLOCK_BUDGET_H_

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

  // Takes the blocks of as many texts as fit, in the order given, and says how many texts that is:
  // at least one, waited for where need be. Whoever waits for room goes
  // before those that come later, so that a long text has its turn. No size is more than the whole
  // budget.
  size_t Take(std::span<const int64_t> sizes);
  void GiveBack(int64_t blocks);

 private:
  std::mutex turn_;  // held by the one that waits for room
  std::mutex mutex_;
  std::condition_variable given_back_;
  int64_t free_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_EMBEDDING_BLOCK_BUDGET_H_
