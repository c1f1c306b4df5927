#include "kernels/hip/gpu/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define TRINE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRINE_ASAN 1
#endif
#endif
#if defined(TRINE_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// Switches to another fiber. Pushes the registers that a call must preserve, stores the stack
// pointer in *save, and continues from the stack pointer `load`. Makes no system call, as
// swapcontext would, because the emulator's kernels do little else than switch. Ends with a jump,
// not with a return: a processor would predict the return by the last call, which another fiber
// made. It predicts a jump by the jump's last target, and neighbouring fibers mostly stand at the
// same place.
extern "C" void trine_fiber_switch(void** save, void* load);

#if defined(__x86_64__)
__asm__(
    ".pushsection .text\n"
    ".globl trine_fiber_switch\n"
    ".hidden trine_fiber_switch\n"
    ".type trine_fiber_switch,@function\n"
    "trine_fiber_switch:\n"
    "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, (%rdi)\n"
    "  mov %rsi, %rsp\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
    "  pop %rcx\n"
    "  jmp *%rcx\n"
    ".size trine_fiber_switch, . - trine_fiber_switch\n"
    ".popsection\n");
#elif defined(__aarch64__)
#if defined(__ARM_FEATURE_BTI_DEFAULT)
#define TRINE_GO_ON "  ret\n"  // BTI forbids jumps to the place after a call
#else
#define TRINE_GO_ON "  br x30\n"
#endif
__asm__(
    ".pushsection .text\n"
    ".globl trine_fiber_switch\n"
    ".hidden trine_fiber_switch\n"
    ".type trine_fiber_switch,%function\n"
    "trine_fiber_switch:\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n"
    "  str x9, [x0]\n"
    "  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n" TRINE_GO_ON
    ".size trine_fiber_switch, . - trine_fiber_switch\n"
    ".popsection\n");
#else
#error "The emulator has no fibers for this processor: build without the host's HIP backend"
#endif

namespace trine::hip::emulator {
namespace {

constexpr size_t kStackBytes = 128 << 10;
// The stacks of neighbouring fibers begin at different cache lines.
constexpr size_t kColours = 32, kColourBytes = 192;

size_t PageBytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

thread_local Fiber* entering = nullptr;

}  // namespace

Fiber::~Fiber() {
  if (memory_ != nullptr) munmap(memory_, kStackBytes + PageBytes());
}

bool Fiber::Start(void (*body)()) {
  if (memory_ == nullptr) {
    void* memory = mmap(nullptr, kStackBytes + PageBytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) return false;
    memory_ = static_cast<std::byte*>(memory);
    mprotect(memory_, PageBytes(), PROT_NONE);
  }
#if defined(TRINE_ASAN)
  // Functions that were abandoned have poisoned the memory around their variables.
  if (stack_pointer_ != nullptr) {
    auto* left = static_cast<std::byte*>(stack_pointer_);
    const std::byte* end = memory_ + PageBytes() + kStackBytes;
    __asan_unpoison_memory_region(left, static_cast<size_t>(end - left));
  }
#endif
  body_ = body;
  const size_t colour = reinterpret_cast<uintptr_t>(this) / sizeof(Fiber) % kColours;
  std::byte* top = memory_ + PageBytes() + kStackBytes - 64 - colour * kColourBytes;
  top = reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15});
  void (*begin)() = &Fiber::Begin;
#if defined(__x86_64__)
  // Looks as if Begin had been called: eight bytes off a multiple of 16, six registers below.
  std::byte* frame = top - 8 - 8 - 48;
  std::memset(frame, 0, 64);
  std::memcpy(frame + 48, &begin, sizeof(begin));
#else
  std::byte* frame = top - 160;
  std::memset(frame, 0, 160);
  std::memcpy(frame + 88, &begin, sizeof(begin));  // x30
#endif
  stack_pointer_ = frame;
  own_fake_stack_ = nullptr;
  return true;
}

void Fiber::Begin() {
  Fiber* self = entering;
#if defined(TRINE_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &self->caller_stack_, &self->caller_bytes_);
#endif
  self->body_();
  std::abort();  // a body ends with Leave(true)
}

void Fiber::Enter() {
  entering = this;
#if defined(TRINE_ASAN)
  __sanitizer_start_switch_fiber(&caller_fake_stack_, memory_ + PageBytes(), kStackBytes);
#endif
  trine_fiber_switch(&caller_pointer_, stack_pointer_);
#if defined(TRINE_ASAN)
  __sanitizer_finish_switch_fiber(caller_fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::Leave([[maybe_unused]] bool for_good) {
#if defined(TRINE_ASAN)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &own_fake_stack_, caller_stack_,
                                 caller_bytes_);
#endif
  trine_fiber_switch(&stack_pointer_, caller_pointer_);
#if defined(TRINE_ASAN)
  __sanitizer_finish_switch_fiber(own_fake_stack_, &caller_stack_, &caller_bytes_);
#endif
}

}  // namespace trine::hip::emulator
