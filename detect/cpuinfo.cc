#include "detect/cpuinfo.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "detect/text.h"

namespace trine::detect {
namespace {

// A word this long is no flag name; a file of garbage must not become a report of garbage.
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

// What a file written by another machine's kernel says about that machine.
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
      if (value == last_flags) continue;  // Nearly always: every processor is alike.
      last_flags = value;
      const std::set<std::string> flags = FlagSet(value);
      if (first) {
        info.flags.assign(flags.begin(), flags.end());
        continue;
      }
      // Work moves between processors, so only what all of them have counts.
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

}  // namespace trine::detect
