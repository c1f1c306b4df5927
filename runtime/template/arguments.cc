#include "runtime/template/arguments.h"

#include "absl/status/status.h"
#include "runtime/template/words.h"

namespace trine::jinja {
namespace {

absl::Status MustBe(std::string_view name, Value::Kind wanted, const Value& given) {
  return Wrong("the argument ", name, " must be ", KindName(wanted), ", not ",
               KindName(given.kind()));
}

// Null where it was not given, or is none.
absl::StatusOr<const Value*> FindKind(const Arguments& arguments, size_t place,
                                      std::string_view name, Value::Kind kind) {
  const Value* value = arguments.Find(place, name);
  if (value == nullptr || value->none()) return nullptr;
  if (!value->is(kind)) return MustBe(name, kind, *value);
  return value;
}

}  // namespace

absl::StatusOr<bool> BoolArgument(const Arguments& arguments, size_t place, std::string_view name,
                                  bool otherwise) {
  const auto value = FindKind(arguments, place, name, Value::Kind::kBool);
  if (!value.ok()) return value.status();
  return *value == nullptr ? otherwise : (*value)->boolean();
}

absl::StatusOr<int64_t> IntArgument(const Arguments& arguments, size_t place, std::string_view name,
                                    int64_t otherwise) {
  const auto value = FindKind(arguments, place, name, Value::Kind::kInt);
  if (!value.ok()) return value.status();
  return *value == nullptr ? otherwise : (*value)->integer();
}

absl::StatusOr<const Text*> TextArgument(const Arguments& arguments, size_t place,
                                         std::string_view name) {
  const auto value = FindKind(arguments, place, name, Value::Kind::kString);
  if (!value.ok()) return value.status();
  return *value == nullptr ? nullptr : &(*value)->text();
}

absl::StatusOr<const Text*> NeededText(const Arguments& arguments, size_t place,
                                       std::string_view name) {
  const auto text = TextArgument(arguments, place, name);
  if (text.ok() && *text == nullptr) {
    return Wrong("the argument ", name, " is missing");
  }
  return text;
}

}  // namespace trine::jinja
