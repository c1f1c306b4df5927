// Reads what identifies a processor from /proc/cpuinfo, and names ARM cores and features. Pure
// functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detect/cpu/cpu.h"

namespace trine::detect {

struct Cpuinfo {
  std::string arch;                // "x86-64", "x86", "aarch64", "arm", "riscv64", "ppc64" or "".
  std::string vendor;              // As a person writes it: "Intel", not "GenuineIntel".
  std::string model;               // "" when the file does not name it (most ARM machines).
  std::vector<std::string> flags;  // x86 "flags" or ARM "Features" that every processor has.
  // Distinct ARM (implementer, part) pairs in order of appearance.
  std::vector<std::pair<uint32_t, uint32_t>> arm_parts;
  int processors = 0;  // The number of "processor" lines.
};

Cpuinfo ParseCpuinfo(std::string_view text);

// Returns "Intel" for "GenuineIntel". Returns an unknown name cleaned (CleanText).
std::string X86VendorName(std::string_view cpuid_vendor);

// Return the 64-bit ARM vector features, from the HWCAP words or from the "Features" line of
// /proc/cpuinfo. The kernel reports a feature only when it saves the registers and all processors
// have it, so every advertised feature is usable.
std::vector<SimdFeature> ArmFeaturesFromHwcap(uint64_t hwcap, uint64_t hwcap2);
std::vector<SimdFeature> ArmFeaturesFromFlags(const std::vector<std::string>& sorted_flags);

// Returns "baseline", "neon", "dotprod", "i8mm", "sve" or "sve2". Each level includes the ones
// before it, so a processor with SVE but without the dot product (A64FX) is "neon".
std::string ArmSimdLevel(const std::vector<SimdFeature>& features);

// Returns the name for a MIDR implementer code: "Arm", "Apple", "Ampere"; "" when unknown.
std::string ArmVendorName(uint32_t implementer);

// Returns the name of a core, "Neoverse-N1"; for an unknown part "Arm part 0xd99".
std::string ArmPartName(uint32_t implementer, uint32_t part);

// Joins the names of the given parts: "Cortex-A55 + Cortex-A76".
std::string ArmModelName(const std::vector<std::pair<uint32_t, uint32_t>>& parts);

}  // namespace trine::detect
