#include "detect/cpu/cpuinfo.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <set>

#include "detect/text.h"

namespace trine::detect {
namespace {

// A longer word is no flag name: a file of garbage must not become a report of garbage.
constexpr size_t kMaxFlagLength = 32;

std::set<std::string> FlagSet(std::string_view value) {
  std::set<std::string> flags;
  for (std::string_view word : Words(value)) {
    if (word.size() <= kMaxFlagLength) flags.insert(CleanText(word));
  }
  return flags;
}

bool Has(const std::vector<std::string>& flags, const char* name) {
  return std::binary_search(flags.begin(), flags.end(), name);
}

// Returns the architecture of the machine that wrote the file; "" when unknown.
std::string GuessArch(const Cpuinfo& info, bool x86_flags, bool arm_features, bool isa,
                      bool power) {
  if (x86_flags) return Has(info.flags, "lm") ? "x86-64" : "x86";
  if (arm_features || !info.arm_parts.empty()) {
    return Has(info.flags, "asimd") ? "aarch64" : "arm";
  }
  if (isa) return "riscv64";
  if (power) return "ppc64";
  return "";
}

struct HwcapBit {
  const char* name;
  const char* linux_flag;
  int word;  // 1: AT_HWCAP, 2: AT_HWCAP2.
  int bit;
};

// Bits from arch/arm64/include/uapi/asm/hwcap.h of Linux, part of the kernel's stable interface.
constexpr HwcapBit kArmFeatures[] = {
    {"neon", "asimd", 1, 1},       {"fp16", "asimdhp", 1, 10}, {"fp16fml", "asimdfhm", 1, 23},
    {"dotprod", "asimddp", 1, 20}, {"i8mm", "i8mm", 2, 13},    {"bf16", "bf16", 2, 14},
    {"sve", "sve", 1, 22},         {"sve2", "sve2", 2, 1},     {"sme", "sme", 2, 23},
};

SimdFeature Feature(const char* name, bool present) {
  SimdFeature feature;
  feature.name = name;
  feature.advertised = feature.usable = present;
  return feature;
}

struct Implementer {
  uint32_t code;
  const char* name;
};

constexpr Implementer kImplementers[] = {
    {0x41, "Arm"},       {0x42, "Broadcom"}, {0x43, "Cavium"}, {0x46, "Fujitsu"},
    {0x48, "HiSilicon"}, {0x4e, "NVIDIA"},   {0x50, "APM"},    {0x51, "Qualcomm"},
    {0x53, "Samsung"},   {0x56, "Marvell"},  {0x61, "Apple"},  {0x6d, "Microsoft"},
    {0x70, "Phytium"},   {0xc0, "Ampere"},
};

struct Part {
  uint32_t implementer, part;
  const char* name;
};

constexpr Part kParts[] = {
    {0x41, 0xd03, "Cortex-A53"},      {0x41, 0xd04, "Cortex-A35"},
    {0x41, 0xd05, "Cortex-A55"},      {0x41, 0xd07, "Cortex-A57"},
    {0x41, 0xd08, "Cortex-A72"},      {0x41, 0xd09, "Cortex-A73"},
    {0x41, 0xd0a, "Cortex-A75"},      {0x41, 0xd0b, "Cortex-A76"},
    {0x41, 0xd0c, "Neoverse-N1"},     {0x41, 0xd0d, "Cortex-A77"},
    {0x41, 0xd0e, "Cortex-A76AE"},    {0x41, 0xd40, "Neoverse-V1"},
    {0x41, 0xd41, "Cortex-A78"},      {0x41, 0xd42, "Cortex-A78AE"},
    {0x41, 0xd44, "Cortex-X1"},       {0x41, 0xd46, "Cortex-A510"},
    {0x41, 0xd47, "Cortex-A710"},     {0x41, 0xd48, "Cortex-X2"},
    {0x41, 0xd49, "Neoverse-N2"},     {0x41, 0xd4a, "Neoverse-E1"},
    {0x41, 0xd4b, "Cortex-A78C"},     {0x41, 0xd4c, "Cortex-X1C"},
    {0x41, 0xd4d, "Cortex-A715"},     {0x41, 0xd4e, "Cortex-X3"},
    {0x41, 0xd4f, "Neoverse-V2"},     {0x41, 0xd80, "Cortex-A520"},
    {0x41, 0xd81, "Cortex-A720"},     {0x41, 0xd82, "Cortex-X4"},
    {0x41, 0xd84, "Neoverse-V3"},     {0x41, 0xd85, "Cortex-X925"},
    {0x41, 0xd87, "Cortex-A725"},     {0x41, 0xd8e, "Neoverse-N3"},
    {0x43, 0x0a1, "ThunderX"},        {0x43, 0x0af, "ThunderX2"},
    {0x46, 0x001, "A64FX"},           {0x48, 0xd01, "Kunpeng-920"},
    {0x4e, 0x003, "Denver 2"},        {0x4e, 0x004, "Carmel"},
    {0x51, 0x001, "Oryon"},           {0x51, 0xc00, "Falkor"},
    {0x61, 0x022, "M1 Icestorm"},     {0x61, 0x023, "M1 Firestorm"},
    {0x61, 0x024, "M1 Pro Icestorm"}, {0x61, 0x025, "M1 Pro Firestorm"},
    {0x61, 0x028, "M1 Max Icestorm"}, {0x61, 0x029, "M1 Max Firestorm"},
    {0x61, 0x032, "M2 Blizzard"},     {0x61, 0x033, "M2 Avalanche"},
    {0x61, 0x034, "M2 Pro Blizzard"}, {0x61, 0x035, "M2 Pro Avalanche"},
    {0x61, 0x038, "M2 Max Blizzard"}, {0x61, 0x039, "M2 Max Avalanche"},
    {0x6d, 0xd49, "Cobalt 100"},      {0xc0, 0xac3, "AmpereOne"},
    {0xc0, 0xac4, "AmpereOne A"},
};

}  // namespace

std::string X86VendorName(std::string_view cpuid_vendor) {
  const std::string_view name = Trim(cpuid_vendor);
  if (name == "GenuineIntel") return "Intel";
  if (name == "AuthenticAMD") return "AMD";
  if (name == "HygonGenuine") return "Hygon";
  if (name == "CentaurHauls" || name == "Shanghai") return "Zhaoxin";
  return CleanText(name, 32);
}

Cpuinfo ParseCpuinfo(std::string_view text) {
  Cpuinfo info;
  bool x86_flags = false, arm_features = false, isa = false, power = false;
  std::string_view last_flags;
  std::optional<uint64_t> implementer;
  for (std::string_view line : Split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = Trim(line.substr(0, colon));
    const std::string_view value = Trim(line.substr(colon + 1));
    if (key == "processor") {
      if (ParseU64(value) && info.processors < kMaxCpus) ++info.processors;
    } else if (key == "vendor_id") {
      if (info.vendor.empty()) info.vendor = X86VendorName(value);
    } else if (key == "model name" || key == "cpu" || key == "uarch") {
      if (info.model.empty()) info.model = CleanText(value);
      power = power || (key == "cpu" && value.starts_with("POWER"));
    } else if (key == "isa") {
      isa = true;
    } else if (key == "flags" || key == "Features") {
      const bool first = !x86_flags && !arm_features;
      x86_flags = x86_flags || key == "flags";
      arm_features = arm_features || key == "Features";
      if (value == last_flags) continue;  // The usual case: all processors are alike.
      last_flags = value;
      const std::set<std::string> flags = FlagSet(value);
      if (first) {
        info.flags.assign(flags.begin(), flags.end());
        continue;
      }
      // Work moves between processors, so a flag is kept only if all of them have it.
      std::vector<std::string> common;
      std::set_intersection(info.flags.begin(), info.flags.end(), flags.begin(), flags.end(),
                            std::back_inserter(common));
      info.flags = std::move(common);
    } else if (key == "CPU implementer") {
      implementer = ParseHex(value);
    } else if (key == "CPU part") {
      const auto part = ParseHex(value);
      if (!implementer || !part || *implementer > 0xff || *part > 0xfff) continue;
      const std::pair<uint32_t, uint32_t> id(static_cast<uint32_t>(*implementer),
                                             static_cast<uint32_t>(*part));
      if (std::find(info.arm_parts.begin(), info.arm_parts.end(), id) == info.arm_parts.end() &&
          info.arm_parts.size() < 8) {
        info.arm_parts.push_back(id);
      }
    }
  }
  info.arch = GuessArch(info, x86_flags, arm_features, isa, power);
  return info;
}

std::vector<SimdFeature> ArmFeaturesFromHwcap(uint64_t hwcap, uint64_t hwcap2) {
  std::vector<SimdFeature> features;
  for (const HwcapBit& bit : kArmFeatures) {
    const uint64_t word = bit.word == 1 ? hwcap : hwcap2;
    features.push_back(Feature(bit.name, (word >> bit.bit & 1u) != 0));
  }
  return features;
}

std::vector<SimdFeature> ArmFeaturesFromFlags(const std::vector<std::string>& sorted_flags) {
  std::vector<SimdFeature> features;
  for (const HwcapBit& bit : kArmFeatures) {
    features.push_back(Feature(
        bit.name, std::binary_search(sorted_flags.begin(), sorted_flags.end(), bit.linux_flag)));
  }
  return features;
}

std::string ArmSimdLevel(const std::vector<SimdFeature>& features) {
  if (!Usable(features, "neon")) return "baseline";
  if (!Usable(features, "dotprod")) return "neon";
  if (!Usable(features, "i8mm")) return "dotprod";
  if (!Usable(features, "sve")) return "i8mm";
  return Usable(features, "sve2") ? "sve2" : "sve";
}

std::string ArmVendorName(uint32_t implementer) {
  for (const Implementer& known : kImplementers) {
    if (known.code == implementer) return known.name;
  }
  return "";
}

std::string ArmPartName(uint32_t implementer, uint32_t part) {
  for (const Part& known : kParts) {
    if (known.implementer == implementer && known.part == part) return known.name;
  }
  const std::string vendor = ArmVendorName(implementer);
  char text[64];
  std::snprintf(text, sizeof(text), "%s part 0x%03x", vendor.empty() ? "ARM" : vendor.c_str(),
                part);
  return text;
}

std::string ArmModelName(const std::vector<std::pair<uint32_t, uint32_t>>& parts) {
  std::string model;
  for (const auto& [implementer, part] : parts) {
    if (!model.empty()) model += " + ";
    model += ArmPartName(implementer, part);
  }
  return model;
}

}  // namespace trine::detect
