#include "runtime/gguf/metadata.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/quoted.h"

namespace trine::gguf {
namespace {

// "a string", "an array of int32".
std::string TypeText(const Value& value) {
  if (const Array* array = std::get_if<Array>(&value.value)) {
    return absl::StrCat("an array of ", ValueTypeName(array->element_type));
  }
  const std::string name = ValueTypeName(value.type);
  return absl::StrCat(name[0] == 'i' ? "an " : "a ", name);
}

absl::Status WrongType(std::string_view key, const Value& value, const char* expected) {
  return absl::InvalidArgumentError(absl::StrCat("the metadata key ", Quoted(key), " is ",
                                                 TypeText(value), "; expected ", expected));
}

// The value when there, the fallback when the key is missing, else the error.
template <class T>
absl::StatusOr<T> Or(absl::StatusOr<T> value, T fallback) {
  if (absl::IsNotFound(value.status())) return fallback;
  return value;
}

}  // namespace

const Value* Metadata::Find(std::string_view key) const {
  const auto found = index_.find(absl::string_view(key.data(), key.size()));
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

absl::StatusOr<const Value*> Metadata::Get(std::string_view key) const {
  const Value* value = Find(key);
  if (value == nullptr) {
    return absl::NotFoundError(absl::StrCat("the metadata key ", Quoted(key), " is missing"));
  }
  return value;
}

absl::StatusOr<std::string_view> Metadata::String(std::string_view key) const {
  const absl::StatusOr<const Value*> value = Get(key);
  if (!value.ok()) return value.status();
  const auto* text = std::get_if<std::string_view>(&(*value)->value);
  if (text == nullptr) return WrongType(key, **value, "a string");
  return *text;
}

absl::StatusOr<int64_t> Metadata::Integer(std::string_view key, int64_t min, int64_t max) const {
  const absl::StatusOr<const Value*> value = Get(key);
  if (!value.ok()) return value.status();
  const auto out_of_range = [&](auto number) {
    return absl::InvalidArgumentError(absl::StrCat("the metadata key ", Quoted(key), " is ", number,
                                                   "; expected ", min, " to ", max));
  };
  if (const auto* number = std::get_if<int64_t>(&(*value)->value)) {
    if (*number < min || *number > max) return out_of_range(*number);
    return *number;
  }
  if (const auto* number = std::get_if<uint64_t>(&(*value)->value)) return out_of_range(*number);
  return WrongType(key, **value, "an integer");
}

absl::StatusOr<double> Metadata::Float(std::string_view key) const {
  const absl::StatusOr<const Value*> value = Get(key);
  if (!value.ok()) return value.status();
  const auto& variant = (*value)->value;
  if (const auto* number = std::get_if<double>(&variant)) return *number;
  if (const auto* number = std::get_if<int64_t>(&variant)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<uint64_t>(&variant)) return static_cast<double>(*number);
  return WrongType(key, **value, "a number");
}

absl::StatusOr<bool> Metadata::Bool(std::string_view key) const {
  const absl::StatusOr<const Value*> value = Get(key);
  if (!value.ok()) return value.status();
  const bool* flag = std::get_if<bool>(&(*value)->value);
  if (flag == nullptr) return WrongType(key, **value, "a bool");
  return *flag;
}

absl::StatusOr<const Array*> Metadata::ArrayOf(std::string_view key) const {
  const absl::StatusOr<const Value*> value = Get(key);
  if (!value.ok()) return value.status();
  const Array* array = std::get_if<Array>(&(*value)->value);
  if (array == nullptr) return WrongType(key, **value, "an array");
  return array;
}

absl::StatusOr<std::string_view> Metadata::StringOr(std::string_view key,
                                                    std::string_view fallback) const {
  return Or(String(key), fallback);
}

absl::StatusOr<int64_t> Metadata::IntegerOr(std::string_view key, int64_t min, int64_t max,
                                            int64_t fallback) const {
  return Or(Integer(key, min, max), fallback);
}

absl::StatusOr<double> Metadata::FloatOr(std::string_view key, double fallback) const {
  return Or(Float(key), fallback);
}

absl::StatusOr<bool> Metadata::BoolOr(std::string_view key, bool fallback) const {
  return Or(Bool(key), fallback);
}

}  // namespace trine::gguf
