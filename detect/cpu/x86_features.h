// Finds out which vector features an x86 processor has, and which of them may be used.
//
// CPUID advertises features. An advertised feature is usable if the operating system saves the
// registers that it needs, which XCR0 says, and, for AMX, also grants this process the tile data.
// All questions go to a CpuidSource: the running processor (HostCpuid), or a table in a test.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "detect/cpu/cpu.h"

namespace trine::detect {

// The registers in which CPUID answers.
struct CpuidRegs {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Answers questions about one processor. One thread at a time may call.
class CpuidSource {
 public:
  virtual ~CpuidSource() = default;

  // Executes CPUID. DecodeX86 asks for leaves 0 and 0x80000000 first, which say how many leaves
  // there are, and then only for leaves that the processor has.
  virtual CpuidRegs Leaf(uint32_t leaf, uint32_t subleaf) = 0;

  // Executes XGETBV, which returns XCR0: which registers the operating system saves. REQUIRES:
  // CPUID advertises OSXSAVE; without it XGETBV faults.
  virtual uint64_t Xcr0() = 0;

  // Requests the operating system's permission to use AMX tile data. The process keeps it, for all
  // its threads, until it ends. Returns 0 or an errno value.
  virtual int RequestAmx() = 0;
};

// Returns the running processor; null if this program was not built for x86-64. The object executes
// CPUID anew at each call of Leaf, on the core where the thread happens to run. The core makes no
// difference: those of a hybrid processor give the same answers to all questions of this file.
std::unique_ptr<CpuidSource> HostCpuid();

struct X86Cpu {
  std::string vendor;                 // "Intel", "AMD", ...
  std::string model;                  // The brand string; "" when there is none.
  std::vector<SimdFeature> features;  // All that this file knows, advertised or not.
  std::string simd_level;             // X86SimdLevel(features)
};

// Describes the processor that `source` answers for. Calls RequestAmx if the processor has AMX and
// the operating system saves tiles: then the whole process has the permission afterwards. REQUIRES:
// `source` is not null.
X86Cpu DecodeX86(CpuidSource* source);

// Returns the features from the words of the "flags" line of /proc/cpuinfo. A feature with a flag
// is advertised. It is usable, too, because the kernel clears the flags of features whose registers
// it does not save. AMX alone is never usable here, because this function requests no permission.
// REQUIRES: the words are sorted.
std::vector<SimdFeature> X86FeaturesFromFlags(const std::vector<std::string>& sorted_flags);

// Returns the highest level of kernels whose features, and those of all lower levels, are usable:
// "baseline" (the lowest), "avx2", "avx512", "avx512-vnni" or "amx".
std::string X86SimdLevel(const std::vector<SimdFeature>& features);

}  // namespace trine::detect
