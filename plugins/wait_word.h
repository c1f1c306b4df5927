// A number that threads can wait on, shared by the CPU's team and by the threads of devices.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace trine {

// A number that threads can wait on until it changes. Waiters spin for a while, then sleep.
// Changing it costs a system call only if a thread sleeps.
class WaitWord {
 public:
  uint32_t Load() const { return value_.load(std::memory_order_acquire); }
  void Store(uint32_t value) { value_.store(value, std::memory_order_seq_cst); }

  // Adds `count`, wrapping, and wakes all sleepers.
  void Add(uint32_t count) {
    value_.fetch_add(count, std::memory_order_seq_cst);
    // A waiter that is not counted yet will see the new value before it sleeps.
    if (sleepers_.load(std::memory_order_seq_cst) != 0) WakeAll();
  }

  // Returns once the value differs from `old`. Spins for at most `spin`, then sleeps.
  void WaitWhile(uint32_t old, std::chrono::microseconds spin) {
    using Clock = std::chrono::steady_clock;
    if (Load() != old) return;
    if (spin.count() > 0) {
      const Clock::time_point end = Clock::now() + spin;
      do {
        for (int looks = 0; looks < 64; ++looks) {  // rarely, because reading the clock is slow
          if (Load() != old) return;
          Pause();
        }
      } while (Clock::now() < end);
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (Load() == old) Sleep(old);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
  }

#if defined(__linux__)
  // Calls futex rather than std::atomic::wait, which yields a few times first. On a busy machine
  // each yield can cost a time slice, while a sleeper runs as soon as it is woken.
  void Sleep(uint32_t old) { Futex(FUTEX_WAIT_PRIVATE, old); }
  void WakeAll() { Futex(FUTEX_WAKE_PRIVATE, INT32_MAX); }
  void Futex(int operation, uint32_t value) {
    static_assert(sizeof(value_) == sizeof(uint32_t));
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), operation, value, nullptr, nullptr, 0);
  }
#else
  void Sleep(uint32_t old) { value_.wait(old, std::memory_order_acquire); }
  void WakeAll() { value_.notify_all(); }
#endif

  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace trine
