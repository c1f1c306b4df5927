// A number that threads can wait on, shared by the CPU's team and by the threads of devices.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#else
#include <thread>
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

  // Stores `to`, and wakes all sleepers, if the value is `from`.
  void Change(uint32_t from, uint32_t to) {
    if (!value_.compare_exchange_strong(from, to, std::memory_order_seq_cst)) return;
    if (sleepers_.load(std::memory_order_seq_cst) != 0) WakeAll();
  }

  // Returns once the value differs from `old`. Spins for at most `spin`, then sleeps.
  void WaitWhile(uint32_t old, std::chrono::microseconds spin) {
    if (SpinWhile(old, spin)) return;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (Load() == old) Sleep(old);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

  // Does what WaitWhile does, but gives up when it has slept for `limit`. Returns whether the value
  // differs from `old`.
  bool WaitWhile(uint32_t old, std::chrono::microseconds spin, std::chrono::milliseconds limit) {
    if (SpinWhile(old, spin)) return true;
    const Clock::time_point end = Clock::now() + limit;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (Load() == old && Clock::now() < end) SleepUntil(old, end);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return Load() != old;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Returns whether the value differs from `old`, after looking for at most `spin`.
  bool SpinWhile(uint32_t old, std::chrono::microseconds spin) const {
    if (Load() != old) return true;
    if (spin.count() <= 0) return false;
    const Clock::time_point end = Clock::now() + spin;
    do {
      for (int looks = 0; looks < 64; ++looks) {  // rarely, because reading the clock is slow
        if (Load() != old) return true;
        Pause();
      }
    } while (Clock::now() < end);
    return false;
  }

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
  void Sleep(uint32_t old) { Futex(FUTEX_WAIT_PRIVATE, old, nullptr); }
  void SleepUntil(uint32_t old, Clock::time_point end) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now());
    if (left.count() <= 0) return;
    timespec time{};
    time.tv_sec = static_cast<time_t>(left.count() / 1000000000);
    time.tv_nsec = static_cast<long>(left.count() % 1000000000);
    Futex(FUTEX_WAIT_PRIVATE, old, &time);
  }
  void WakeAll() { Futex(FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr); }
  void Futex(int operation, uint32_t value, const timespec* most) {
    static_assert(sizeof(value_) == sizeof(uint32_t));
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), operation, value, most, nullptr, 0);
  }
#else
  void Sleep(uint32_t old) { value_.wait(old, std::memory_order_acquire); }
  void SleepUntil(uint32_t, Clock::time_point) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  void WakeAll() { value_.notify_all(); }
#endif

  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace trine
