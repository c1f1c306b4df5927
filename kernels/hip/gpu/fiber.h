// Threads of execution that take turns within one thread of the system, by hand.
#ifndef TRINE_KERNELS_HIP_GPU_FIBER_H_
#define TRINE_KERNELS_HIP_GPU_FIBER_H_

#include <cstddef>

namespace trine::hip::emulator {

// A stack of its own, behind a page that can't be touched. Started any number of times; what was
// abandoned half-way is forgotten, without destructors.
class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next Enter begins `body`, which never returns: it ends with Leave(true). False: there is
  // no memory for the stack.
  bool Start(void (*body)());

  // From the thread's own stack: runs the fiber until it leaves.
  void Enter();
  // From inside: back to where it was entered. `for_good`: it will not be entered again.
  void Leave(bool for_good);

 private:
  std::byte* memory_ = nullptr;  // with the guard page
  void* stack_pointer_ = nullptr;
  void* caller_pointer_ = nullptr;
  void (*body_)() = nullptr;

  // What an address sanitizer wants to know.
  void* own_fake_stack_ = nullptr;
  void* caller_fake_stack_ = nullptr;
  const void* caller_stack_ = nullptr;
  size_t caller_bytes_ = 0;

  static void Begin();
};

}  // namespace trine::hip::emulator

#endif  // TRINE_KERNELS_HIP_GPU_FIBER_H_
