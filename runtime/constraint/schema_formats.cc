#include "runtime/constraint/schema_formats.h"

#include "absl/strings/str_cat.h"

namespace trine::constraint {
namespace {

// The 29th of February in years that 4 divides, but for those that 100 divides and 400 doesn't.
constexpr const char* kDate =
    "(\\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|"
    "02-(0[1-9]|1\\d|2[0-8]))|"
    "(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)";
constexpr const char* kTime =
    "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-](0\\d|1[0-3]):[0-5]\\d)";
constexpr const char* kUuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
constexpr const char* kOctet = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
constexpr const char* kLabel = "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?";
constexpr const char* kGroup = "[0-9a-f]{1,4}";

std::string Host() { return absl::StrCat("(", kLabel, "\\.){1,3}[a-z]{2,12}"); }

// All eight groups, or "::" in the place of some.
std::string Ipv6() {
  std::string pattern = absl::StrCat("((", kGroup, ":){7}", kGroup);
  for (int before = 0; before <= 6; ++before) {
    const int after = 6 - before;
    absl::StrAppend(&pattern, "|");
    if (before > 0) absl::StrAppend(&pattern, kGroup, "(:", kGroup, "){", before - 1, "}");
    absl::StrAppend(&pattern, "::");
    if (after > 0) absl::StrAppend(&pattern, "(", kGroup, "(:", kGroup, "){0,", after - 1, "})?");
  }
  return pattern + ")";
}

}  // namespace

std::string FormatPattern(std::string_view format) {
  const auto whole = [](std::string_view pattern) {
    return absl::StrCat("^", absl::string_view(pattern.data(), pattern.size()), "$");
  };
  if (format == "date") return whole(kDate);
  if (format == "time") return whole(kTime);
  if (format == "date-time") return whole(absl::StrCat(kDate, "T", kTime));
  if (format == "uuid") return whole(kUuid);
  if (format == "ipv4") {
    return whole(absl::StrCat(kOctet, "\\.", kOctet, "\\.", kOctet, "\\.", kOctet));
  }
  if (format == "ipv6") return whole(Ipv6());
  if (format == "hostname") return whole(Host());
  if (format == "email") {
    return whole(absl::StrCat("[a-z0-9_+-]{1,20}(\\.[a-z0-9_+-]{1,20}){0,2}@", Host()));
  }
  if (format == "uri") {
    return whole(absl::StrCat("(https?|ftp)://", Host(), "(:[1-9]\\d{0,3})?",
                              "(/[A-Za-z0-9._~-]{0,20}){0,6}", "(\\?[A-Za-z0-9._~=&-]{0,40})?",
                              "(#[A-Za-z0-9._~-]{0,20})?"));
  }
  return "";
}

std::string_view FormatNames() {
  return "date, time, date-time, uuid, email, hostname, ipv4, ipv6, uri";
}

}  // namespace trine::constraint
