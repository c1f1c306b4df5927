// Finds out which x86 vector features a processor advertises and which of them may be used.
//
// Decoding touches only a CpuidSource, which is the running processor (HostCpuid) or a table in a
// test. A feature is usable when CPUID has it, the operating system saves its registers (XCR0) and,
// for AMX, grants this process the tile data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "detect/cpu/cpu.h"

namespace trine::detect {

struct CpuidRegs {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Answers what a processor says about itself. Called from one thread at a time.
class CpuidSource {
 public:
  virtual ~CpuidSource() = default;

  // Executes CPUID. Called only for leaves that the processor says it has.
  virtual CpuidRegs Leaf(uint32_t leaf, uint32_t subleaf) = 0;

  // Reads XCR0. Called only when CPUID has OSXSAVE, because the instruction faults otherwise.
  virtual uint64_t Xcr0() = 0;

  // Requests AMX tile data for the whole process, which keeps it. Returns 0 or an errno value.
  virtual int RequestAmx() = 0;
};

// Returns the running processor; null if this program was not built for x86-64. Executes CPUID on
// the core where the thread happens to run; the cores of a hybrid processor give the same answers
// to all questions of this file.
std::unique_ptr<CpuidSource> HostCpuid();

struct X86Cpu {
  std::string vendor;  // "Intel", "AMD", ...
  std::string model;   // The brand string; "" when there is none.
  std::vector<SimdFeature> features;
  std::string simd_level;
};

// Describes the processor that answers.
X86Cpu DecodeX86(CpuidSource* source);

// Returns the features from the "flags" words of /proc/cpuinfo, which must be sorted. The kernel
// clears the flags of registers that it does not save, so a feature with a flag is usable, except
// for AMX, for which no permission was requested.
std::vector<SimdFeature> X86FeaturesFromFlags(const std::vector<std::string>& sorted_flags);

// Returns the highest level whose features are usable: "baseline", "avx2", "avx512", "avx512-vnni"
// or "amx".
std::string X86SimdLevel(const std::vector<SimdFeature>& features);

}  // namespace trine::detect
