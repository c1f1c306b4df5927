#include "tools/cli/options/values.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace trine {
namespace {

// Reads a number as the parser does. Sets `too_large` if it is one that the type can't hold.
template <typename T>
bool Read(const std::string& text, T* value, bool* too_large) {
  *too_large = false;
  // The parser takes a number below 0 for a large one.
  if (std::is_unsigned_v<T> && absl::StrContains(text, "-")) return false;
  errno = 0;
  const bool read = CLI::detail::lexical_cast(text, *value);
  *too_large = errno == ERANGE;
  if constexpr (std::is_floating_point_v<T>) {
    if (*value != *value) return false;
  }
  return read && !*too_large;
}

template <typename T>
std::string Kind() {
  return std::is_floating_point_v<T> ? "number" : "whole number";
}

}  // namespace

std::string IsNo(const std::string& text, const std::string& expected, const std::string& article) {
  if (text.empty()) return absl::StrCat("it is empty: expected ", article, " ", expected);
  return absl::StrCat("'", text, "' is no ", expected);
}

template <typename T>
std::string WrongNumber(const std::string& text) {
  T value{};
  bool too_large = false;
  if (Read(text, &value, &too_large)) return "";
  if (too_large) return absl::StrCat("'", text, "' is too large");
  return IsNo(text, Kind<T>() + (std::is_unsigned_v<T> ? " from 0 on" : ""));
}
template std::string WrongNumber<int>(const std::string&);
template std::string WrongNumber<int64_t>(const std::string&);
template std::string WrongNumber<uint32_t>(const std::string&);
template std::string WrongNumber<uint64_t>(const std::string&);
template std::string WrongNumber<float>(const std::string&);
template std::string WrongNumber<double>(const std::string&);

template <typename T>
std::string WrongNumber(const std::string& text, T low, T high) {
  T value{};
  bool too_large = false;
  if (Read(text, &value, &too_large) && value >= low && value <= high) return "";
  return IsNo(text, absl::StrCat(Kind<T>(), " from ", low, " to ", high));
}
template std::string WrongNumber(const std::string&, int, int);
template std::string WrongNumber(const std::string&, int64_t, int64_t);
template std::string WrongNumber(const std::string&, uint32_t, uint32_t);
template std::string WrongNumber(const std::string&, float, float);
template std::string WrongNumber(const std::string&, double, double);

std::string WrongWord(const std::string& text, const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return "";
  const std::string list = absl::StrJoin(choices, ", ");
  return text.empty() ? absl::StrCat("it is empty: expected one of ", list)
                      : absl::StrCat("'", text, "' is none of ", list);
}

std::string WrongSize(std::string* text) {
  constexpr char kExpected[] = "number of bytes, such as 4096, 512M or 16G";
  const std::string given(absl::StripAsciiWhitespace(*text));
  if (absl::StartsWith(given, "-")) {
    return absl::StrCat("'", *text, "' is below 0: expected a ", kExpected);
  }
  // The parser takes a unit alone for one of it.
  if (given.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(given[0]))) {
    return IsNo(given, kExpected);
  }
  std::string bytes = given;
  errno = 0;
  try {
    if (CLI::AsSizeValue(/*kb_is_1000=*/false)(bytes).empty() && errno != ERANGE) {
      *text = bytes;
      return "";
    }
  } catch (const CLI::ValidationError& wrong) {
    if (absl::StrContains(wrong.what(), "overflow")) errno = ERANGE;
  }
  return errno == ERANGE ? absl::StrCat("'", given, "' is too large") : IsNo(given, kExpected);
}

std::string WrongFlag(const std::string& text) {
  return absl::StrCat("'", text, "' is neither true nor false; without a value it is true");
}

}  // namespace trine
