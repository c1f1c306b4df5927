// Which 64-bit ARM vector features may be used, and the names of ARM cores.
//
// Pure functions over what Linux hands out: the HWCAP words or the "Features" line of
// /proc/cpuinfo. The kernel only shows what it saves and what all processors have, so here
// advertised and usable are one.

#ifndef TRINE_DETECT_ARM_FEATURES_H_
#define TRINE_DETECT_ARM_FEATURES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "detect/cpu.h"

namespace trine::detect {

std::vector<SimdFeature> ArmFeaturesFromHwcap(uint64_t hwcap, uint64_t hwcap2);
std::vector<SimdFeature> ArmFeaturesFromFlags(const std::vector<std::string>& sorted_flags);

// "baseline", "neon", "dotprod", "i8mm", "sve" or "sve2"; each includes the ones before it, so a
// processor with SVE but without the dot product (A64FX) is "neon".
std::string ArmSimdLevel(const std::vector<SimdFeature>& features);

// By the MIDR implementer code: "Arm", "Apple", "Ampere"; "" when unknown.
std::string ArmVendorName(uint32_t implementer);

// "Neoverse-N1"; an unknown part is "Arm part 0xd99".
std::string ArmPartName(uint32_t implementer, uint32_t part);

// Distinct names joined: "Cortex-A55 + Cortex-A76".
std::string ArmModelName(const std::vector<std::pair<uint32_t, uint32_t>>& parts);

}  // namespace trine::detect

#endif  // TRINE_DETECT_ARM_FEATURES_H_
