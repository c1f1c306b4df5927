#include "tools/server/openai/requests/field.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/server/openai/api_error.h"

namespace trine::server {
namespace {

const char* KindOf(const Json& json) {
  if (json.is_string()) return "a string";
  if (json.is_boolean()) return "a boolean";
  if (json.is_number()) return "a number";
  if (json.is_array()) return "an array";
  return json.is_object() ? "an object" : "null";
}

// Returns a whole number in any notation: clients in languages without integers write 3.0.
std::optional<int64_t> WholeNumber(const Json& json) {
  if (json.is_number_unsigned()) {
    const uint64_t value = json.get<uint64_t>();
    if (value > INT64_MAX) return std::nullopt;
    return static_cast<int64_t>(value);
  }
  if (json.is_number_integer()) return json.get<int64_t>();
  if (!json.is_number_float()) return std::nullopt;
  const double value = json.get<double>();
  if (!(std::fabs(value) <= 9007199254740992.0) || value != std::floor(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

}  // namespace

void Field::Fail(std::string_view message, std::string_view code) const {
  if (failed()) return;
  *error_ = ParamError(path_, absl::StrCat("'", path_, "' ", std::string(message)), code);
}

void Field::FailType(std::string_view expected) const {
  Fail(absl::StrCat(present() ? absl::StrCat("is ", KindOf(*json_)) : "is missing", ": expected ",
                    std::string(expected)));
}

Field Field::operator[](std::string_view name) const {
  std::string path = absl::StrCat(path_, path_.empty() ? "" : ".", std::string(name));
  if (!ExpectObject() || !present()) return Field(nullptr, std::move(path), error_);
  const auto member = json_->find(std::string(name));
  return Field(member == json_->end() ? nullptr : &*member, std::move(path), error_);
}

std::vector<Field> Field::Items(size_t at_most) const {
  std::vector<Field> items;
  if (!present()) return items;
  if (!json_->is_array()) {
    FailType("an array");
    return items;
  }
  if (json_->size() > at_most) {
    Fail(absl::StrCat("has ", json_->size(), " items: expected at most ", at_most));
    return items;
  }
  for (const Json& item : *json_) {
    items.push_back(Field(&item, absl::StrCat(path_, "[", items.size(), "]"), error_));
  }
  return items;
}

std::vector<std::pair<std::string, Field>> Field::Members(size_t at_most) const {
  std::vector<std::pair<std::string, Field>> members;
  if (!ExpectObject() || !present()) return members;
  if (json_->size() > at_most) {
    Fail(absl::StrCat("has ", json_->size(), " members: expected at most ", at_most));
    return members;
  }
  for (const auto& [name, value] : json_->get_ref<const Json::object_t&>()) {
    members.emplace_back(name, Field(&value, absl::StrCat(path_, ".", name), error_));
  }
  return members;
}

void Field::Get(bool* out) const {
  if (!present()) return;
  if (!json_->is_boolean()) return FailType("a boolean");
  *out = json_->get<bool>();
}

void Field::Get(std::string* out) const {
  if (!present()) return;
  if (!json_->is_string()) return FailType("a string");
  *out = json_->get_ref<const std::string&>();
}

void Field::Get(float* out, double low, double high) const {
  if (!present()) return;
  const std::string expected = absl::StrCat("a number from ", low, " to ", high);
  if (!json_->is_number()) return FailType(expected);
  const double value = json_->get<double>();
  if (!(value >= low && value <= high)) {
    return Fail(absl::StrCat("is ", value, ": expected ", expected));
  }
  *out = static_cast<float>(value);
}

void Field::Get(int64_t* out, int64_t low, int64_t high) const {
  if (!present()) return;
  const std::string expected = absl::StrCat("a whole number from ", low, " to ", high);
  if (!json_->is_number()) return FailType(expected);
  const std::optional<int64_t> value = WholeNumber(*json_);
  if (!value.has_value() || *value < low || *value > high) {
    return Fail(absl::StrCat("is ", Dump(*json_), ": expected ", expected));
  }
  *out = *value;
}

void Field::Get(int32_t* out, int32_t low, int32_t high) const {
  int64_t value = *out;
  Get(&value, int64_t{low}, int64_t{high});
  *out = static_cast<int32_t>(value);
}

bool Field::Require() const {
  if (present()) return true;
  Fail("is missing", "missing_required_parameter");
  return false;
}

bool Field::ExpectObject() const {
  if (!present() || json_->is_object()) return true;
  FailType("an object");
  return false;
}

absl::StatusOr<Json> ParseRequest(std::string_view body) {
  absl::StatusOr<Json> document = ParseJson(body);
  if (!document.ok()) {
    return absl::Status(document.status().code(),
                        absl::StrCat("the request's body: ", document.status().message()));
  }
  if (!document->is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request's body is ", KindOf(*document), ": expected a JSON object"));
  }
  return document;
}

}  // namespace trine::server
