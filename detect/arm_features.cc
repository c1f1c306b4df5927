#include "detect/arm_features.h"

#include <algorithm>
#include <cstdio>

namespace trine::detect {
namespace {

struct HwcapBit {
  const char* name;
  const char* linux_flag;
  int word;  // 1: AT_HWCAP, 2: AT_HWCAP2.
  int bit;
};

// Linux, arch/arm64/include/uapi/asm/hwcap.h: part of the kernel's stable interface.
constexpr HwcapBit kFeatures[] = {
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

std::vector<SimdFeature> ArmFeaturesFromHwcap(uint64_t hwcap, uint64_t hwcap2) {
  std::vector<SimdFeature> features;
  for (const HwcapBit& bit : kFeatures) {
    const uint64_t word = bit.word == 1 ? hwcap : hwcap2;
    features.push_back(Feature(bit.name, (word >> bit.bit & 1u) != 0));
  }
  return features;
}

std::vector<SimdFeature> ArmFeaturesFromFlags(const std::vector<std::string>& sorted_flags) {
  std::vector<SimdFeature> features;
  for (const HwcapBit& bit : kFeatures) {
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
