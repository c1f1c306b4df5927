#include "runtime/base/json_members.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"

namespace trine {
namespace {

using Json = JsonMembers::Json;

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t most,
                                          const char* what) {
  std::error_code error;
  const auto file = std::filesystem::status(path, error);
  if (file.type() == std::filesystem::file_type::not_found) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no such file"));
  }
  if (error) return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
  if (!std::filesystem::is_regular_file(file)) return Invalid(path, ": it is no file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::PermissionDeniedError(absl::StrCat(path, ": it can't be read"));
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > most) return Invalid(path, ": it is too large for ", what);
  return std::string{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string HashText(uint64_t hash) { return absl::StrCat(absl::Hex(hash, absl::kZeroPad16)); }

void JsonMembers::Fail(const char* name, const std::string& what) {
  if (status_->ok()) *status_ = Invalid("\"", name, "\" ", what);
}

template <class Is>
const Json* JsonMembers::Member(const char* name, Is is, const char* wrong) {
  const auto found = json_.is_object() ? json_.find(name) : json_.end();
  if (found != json_.end() && std::invoke(is, *found)) return &*found;
  Fail(name, found == json_.end() ? "is missing" : wrong);
  return nullptr;
}

template <class T, class Is>
T JsonMembers::Get(const char* name, Is is, const char* wrong) {
  const Json* json = Member(name, is, wrong);
  return json != nullptr ? json->template get<T>() : T();
}

template <class T, class Is>
std::vector<T> JsonMembers::Values(const char* name, Is is, const char* wrong) {
  std::vector<T> values;
  for (const Json& json : List(name)) {
    if (!std::invoke(is, json)) {
      Fail(name, wrong);
      return {};
    }
    values.push_back(json.template get<T>());
  }
  return values;
}

std::string JsonMembers::Text(const char* name) {
  return Get<std::string>(name, &Json::is_string, "is no text");
}

int64_t JsonMembers::Integer(const char* name) {
  const auto fits = [](const Json& json) {
    constexpr auto kMost = uint64_t{std::numeric_limits<int64_t>::max()};
    return json.is_number_integer() && !(json.is_number_unsigned() && json.get<uint64_t>() > kMost);
  };
  return Get<int64_t>(name, fits, "is no whole number");
}

uint64_t JsonMembers::Unsigned(const char* name) {
  return Get<uint64_t>(name, &Json::is_number_unsigned, "is no whole number");
}

int64_t JsonMembers::Count(const char* name, int64_t most) {
  const auto value = Get<uint64_t>(name, &Json::is_number_unsigned, "is no whole number from 1 on");
  if (value >= 1 && value <= static_cast<uint64_t>(most)) return static_cast<int64_t>(value);
  Fail(name, absl::StrCat("is not from 1 to ", most));
  return 0;
}

uint64_t JsonMembers::Hash(const char* name) {
  const std::string text = Text(name);
  uint64_t hash = 0;
  const bool good = text.size() == 16 && text.find_first_not_of("0123456789abcdef") == text.npos &&
                    absl::SimpleHexAtoi(text, &hash);
  if (!good) Fail(name, "is not 16 hexadecimal digits");
  return hash;
}

bool JsonMembers::Flag(const char* name) {
  return Get<bool>(name, &Json::is_boolean, "is no true or false");
}

double JsonMembers::Number(const char* name) {
  return Get<double>(name, &Json::is_number, "is no number");
}

std::vector<double> JsonMembers::Numbers(const char* name) {
  return Values<double>(name, &Json::is_number, "has something that is no number");
}

std::vector<std::string> JsonMembers::Texts(const char* name) {
  return Values<std::string>(name, &Json::is_string, "has something that is no text");
}

const Json& JsonMembers::Object(const char* name) {
  static const Json kNone = Json::object();
  const Json* const object = Member(name, &Json::is_object, "is no object");
  return object != nullptr ? *object : kNone;
}

const Json& JsonMembers::List(const char* name) {
  static const Json kNone = Json::array();
  const Json* const list = Member(name, &Json::is_array, "is no list");
  return list != nullptr ? *list : kNone;
}

}  // namespace trine
