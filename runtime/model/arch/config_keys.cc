#include "runtime/model/arch/config_keys.h"

#include "absl/strings/str_cat.h"

namespace trine {

int64_t ConfigKeys::Integer(const char* name, int64_t min, int64_t max) {
  return Take(metadata_.Integer(Name(name), min, max), int64_t{0});
}

int64_t ConfigKeys::IntegerOr(const char* name, int64_t min, int64_t max, int64_t fallback) {
  return Take(metadata_.IntegerOr(Name(name), min, max, fallback), fallback);
}

double ConfigKeys::Float(const char* name, double min, double max) {
  const double value = Take(metadata_.Float(Name(name)), min);
  Require(value >= min && value <= max,
          absl::StrCat(Name(name), " is ", value, ": it must lie between ", min, " and ", max));
  return value;
}

double ConfigKeys::FloatOr(const char* name, double min, double max, double fallback) {
  return Has(name) ? Float(name, min, max) : fallback;
}

bool ConfigKeys::BoolOr(const char* name, bool fallback) {
  return Take(metadata_.BoolOr(Name(name), fallback), fallback);
}

std::string ConfigKeys::StringOr(const char* name, const std::string& fallback) {
  const auto value = metadata_.StringOr(Name(name), fallback);
  if (!value.ok()) Fail(value.status());
  return value.ok() ? std::string(*value) : fallback;
}

bool ConfigKeys::IsArray(const char* name) const { return metadata_.ArrayOf(Name(name)).ok(); }

std::vector<bool> ConfigKeys::Flags(const char* name, int64_t count) {
  const auto array = metadata_.ArrayOf(Name(name));
  if (!array.ok()) {
    Fail(array.status());
    return {};
  }
  const std::vector<int64_t>& values = (*array)->integers;
  Require(static_cast<int64_t>(values.size()) == count,
          absl::StrCat(Name(name), " has ", values.size(), " flags for ", count, " layers"));
  std::vector<bool> flags;
  for (int64_t value : values) flags.push_back(value != 0);
  return flags;
}

}  // namespace trine
