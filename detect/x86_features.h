// Which x86 vector features a processor advertises and which of them may be used.
//
// The decoding is pure: it asks a CpuidSource, which is the running processor (HostCpuid in
// x86_cpuid.h) or a table in a test. A feature is usable when CPUID has it, the operating system
// saves its registers (XCR0) and, for AMX, gives this process permission for the tile data.

#ifndef TRINE_DETECT_X86_FEATURES_H_
#define TRINE_DETECT_X86_FEATURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "detect/cpu.h"

namespace trine::detect {

struct CpuidRegs {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// One processor. Implementations are called from one thread at a time.
class CpuidSource {
 public:
  virtual ~CpuidSource() = default;

  // The CPUID instruction. Asked only for leaves the processor says it has.
  virtual CpuidRegs Leaf(uint32_t leaf, uint32_t subleaf) = 0;

  // XCR0. Asked only when CPUID says OSXSAVE; the instruction faults otherwise.
  virtual uint64_t Xcr0() = 0;

  // Asks for AMX tile data for the whole process, which it then keeps. 0 or an errno value.
  virtual int RequestAmx() = 0;
};

struct X86Cpu {
  std::string vendor;  // "Intel", "AMD", ...
  std::string model;   // The brand string, "" when there is none.
  std::vector<SimdFeature> features;
  std::string simd_level;
};

X86Cpu DecodeX86(CpuidSource* source);

// The same features from the "flags" words of /proc/cpuinfo, sorted. The kernel clears the flags of
// what it does not save, so a flag means usable, save for AMX, where permission was not tried.
std::vector<SimdFeature> X86FeaturesFromFlags(const std::vector<std::string>& sorted_flags);

// "baseline", "avx2", "avx512", "avx512-vnni" or "amx".
std::string X86SimdLevel(const std::vector<SimdFeature>& features);

}  // namespace trine::detect

#endif  // TRINE_DETECT_X86_FEATURES_H_
