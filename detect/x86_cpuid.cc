#include "detect/x86_cpuid.h"

#if defined(__x86_64__)

#include <cpuid.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace trine::detect {
namespace {

class Host : public CpuidSource {
 public:
  CpuidRegs Leaf(uint32_t leaf, uint32_t subleaf) override {
    CpuidRegs regs;
    __cpuid_count(leaf, subleaf, regs.eax, regs.ebx, regs.ecx, regs.edx);
    return regs;
  }

  uint64_t Xcr0() override {
    uint32_t low = 0, high = 0;
    // Not the intrinsic: that would need the whole file built with -mxsave.
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (static_cast<uint64_t>(high) << 32) | low;
  }

  int RequestAmx() override {
#if defined(__linux__)
    // From <asm/prctl.h>, which is too old on some build machines to have them.
    constexpr long kArchReqXcompPerm = 0x1023;
    constexpr long kXfeatureXtileData = 18;
    return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtileData) == 0 ? 0 : errno;
#else
    // Other systems that set the tile bits in XCR0 ask for nothing more.
    return 0;
#endif
  }
};

}  // namespace

std::unique_ptr<CpuidSource> HostCpuid() { return std::make_unique<Host>(); }

}  // namespace trine::detect

#else

namespace trine::detect {

std::unique_ptr<CpuidSource> HostCpuid() { return nullptr; }

}  // namespace trine::detect

#endif  // defined(__x86_64__)
