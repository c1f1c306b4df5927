// The floating-point state in which kernels run.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace trine {

// Gives the calling thread the floating-point state of a new thread while it lives: rounding to
// nearest, denormals kept, no traps. A thread of the embedding program may be in another state, in
// which sums would have other bits. Restores that state at the end.
class FloatDefaults {
 public:
  FloatDefaults() : saved_(Get()), changed_((saved_ & kControl) != kDefault) {
    if (changed_) Set(kDefault);
  }
  ~FloatDefaults() {
    if (changed_) Set(saved_);
  }
  FloatDefaults(const FloatDefaults&) = delete;
  FloatDefaults& operator=(const FloatDefaults&) = delete;

 private:
#if defined(__x86_64__)
  // MXCSR: all exceptions masked. The lowest six bits are not control but a record.
  static constexpr uint64_t kDefault = 0x1f80, kControl = 0xffc0;
  static uint64_t Get() { return _mm_getcsr(); }
  static void Set(uint64_t value) { _mm_setcsr(static_cast<uint32_t>(value)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kDefault = 0, kControl = 0xffffffff;  // FPCR
  static uint64_t Get() {
    uint64_t value = 0;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void Set(uint64_t value) { asm volatile("msr fpcr, %0" : : "r"(value) : "memory"); }
#else
  static constexpr uint64_t kDefault = 0, kControl = 0;
  static uint64_t Get() { return 0; }
  static void Set(uint64_t) {}
#endif

  const uint64_t saved_;
  const bool changed_;
};

}  // namespace trine
