// The parts of /proc/cpuinfo that identify a processor. Pure: text in, fields out.

#ifndef TRINE_DETECT_CPUINFO_H_
#define TRINE_DETECT_CPUINFO_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trine::detect {

struct Cpuinfo {
  std::string arch;                // "x86-64", "x86", "aarch64", "arm", "riscv64", "ppc64" or "".
  std::string vendor;              // As a person writes it: "Intel", not "GenuineIntel".
  std::string model;               // "" when the file has no such line (most ARM machines).
  std::vector<std::string> flags;  // x86 "flags" or ARM "Features" that every processor has.
  // Distinct ARM (implementer, part) pairs in order of appearance.
  std::vector<std::pair<uint32_t, uint32_t>> arm_parts;
  int processors = 0;  // "processor" lines.
};

Cpuinfo ParseCpuinfo(std::string_view text);

// "GenuineIntel" -> "Intel"; unknown names come back cleaned but unchanged.
std::string X86VendorName(std::string_view cpuid_vendor);

}  // namespace trine::detect

#endif  // TRINE_DETECT_CPUINFO_H_
