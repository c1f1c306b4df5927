// Fibers: threads of execution that take turns, by explicit switches, in one thread of the system.
#pragma once

#include <cstddef>

namespace trine::hip::emulator {

// Has its own stack, with a guard page at its end. Can be started any number of times. If the last
// body has not ended, it is forgotten, and its destructors do not run.
class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Makes the next Enter begin `body`, which must end with Leave(true) and not return. Returns
  // false if there is no memory for the stack.
  bool Start(void (*body)());

  // Runs the fiber until it calls Leave. Call on the thread's own stack.
  void Enter();
  // Goes back to the caller of Enter. Call inside the fiber. `for_good`: it will not be entered
  // again.
  void Leave(bool for_good);

 private:
  std::byte* memory_ = nullptr;  // including the guard page
  void* stack_pointer_ = nullptr;
  void* caller_pointer_ = nullptr;
  void (*body_)() = nullptr;

  // For the address sanitizer.
  void* own_fake_stack_ = nullptr;
  void* caller_fake_stack_ = nullptr;
  const void* caller_stack_ = nullptr;
  size_t caller_bytes_ = 0;

  static void Begin();
};

}  // namespace trine::hip::emulator
