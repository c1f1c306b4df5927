// A number that threads wait for another value of: awake for a while, then asleep. Waking costs a
// system call only where somebody sleeps.
#ifndef TRINE_PLUGINS_WAIT_WORD_H_
#define TRINE_PLUGINS_WAIT_WORD_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace trine {

class WaitWord {
 public:
  uint32_t Load() const { return value_.load(std::memory_order_acquire); }
  void Store(uint32_t value) { value_.store(value, std::memory_order_seq_cst); }

  // Adds, wrapping, and wakes whoever sleeps. Returns the new value.
  uint32_t Add(uint32_t count);

  // Returns once the value is another than `old`; for at most `spin` it keeps the processor.
  void WaitWhile(uint32_t old, std::chrono::microseconds spin);

 private:
  void Sleep(uint32_t old);
  void WakeAll();

  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace trine

#endif  // TRINE_PLUGINS_WAIT_WORD_H_
