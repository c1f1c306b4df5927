#include "plugins/wait_word.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace

uint32_t WaitWord::Add(uint32_t count) {
  const uint32_t value = value_.fetch_add(count, std::memory_order_seq_cst) + count;
  // Who is not counted here yet will find the new value before it sleeps.
  if (sleepers_.load(std::memory_order_seq_cst) != 0) WakeAll();
  return value;
}

void WaitWord::WaitWhile(uint32_t old, std::chrono::microseconds spin) {
  if (Load() != old) return;
  if (spin.count() > 0) {
    const Clock::time_point end = Clock::now() + spin;
    do {
      for (int looks = 0; looks < 64; ++looks) {  // between two looks at the clock
        if (Load() != old) return;
        Pause();
      }
    } while (Clock::now() < end);
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (Load() == old) Sleep(old);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

#if defined(__linux__)

// Not std::atomic::wait, which yields a few times first: on a busy machine each of those can cost a
// time slice, while who sleeps is run again as soon as it is woken.
void WaitWord::Sleep(uint32_t old) {
  static_assert(sizeof(value_) == sizeof(uint32_t));
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), FUTEX_WAIT_PRIVATE, old, nullptr,
          nullptr, 0);
}

void WaitWord::WakeAll() {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr,
          nullptr, 0);
}

#else

void WaitWord::Sleep(uint32_t old) { value_.wait(old, std::memory_order_acquire); }
void WaitWord::WakeAll() { value_.notify_all(); }

#endif

}  // namespace trine
