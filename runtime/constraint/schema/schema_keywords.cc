// The keywords of a schema that apply to the value itself, grouped by the type of the value.
#include <algorithm>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/constraint/schema/schema_facts.h"

namespace trine::constraint {
namespace {

constexpr size_t kMaxValues = 4096;

// Keywords that describe the schema, or that validators don't check.
constexpr std::string_view kAnnotations[] = {
    "$schema", "title",    "$comment", "id",        "description", "contentMediaType",
    "$defs",   "$id",      "examples", "example",   "definitions", "contentEncoding",
    "default", "readOnly", "$anchor",  "writeOnly", "deprecated",
};
// SchemaReader::ReadOne reads these.
constexpr std::string_view kCombinators[] = {"$ref", "allOf", "anyOf", "oneOf"};

template <size_t kCount>
bool IsOneOf(const std::string& name, const std::string_view (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// The 29th of February only in leap years: divisible by 4, and by 400 if divisible by 100.
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

// Returns a pattern for eight groups, or for fewer with one "::".
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

class KeywordReader {
 public:
  KeywordReader(const SchemaPlace& place, SchemaReader* reader) : place_(place), reader_(reader) {
    facts_.pointer = place.pointer;
  }

  absl::StatusOr<Facts> Read() {
    for (const auto& [name, value] : place_.schema->items()) {
      if (IsOneOf(name, kAnnotations) || IsOneOf(name, kCombinators)) continue;
      if (absl::StartsWith(name, "x-")) continue;
      if (const absl::Status s = ReadKeyword(name, value); !s.ok()) return s;
    }
    // Before 2020-12 `items` can be a list, and `additionalItems` then applies to further items.
    if (place_.schema->contains("items") && (*place_.schema)["items"].is_array()) {
      facts_.items = items_behind_list_;
    }
    return std::move(facts_);
  }

 private:
  absl::Status Fail(const std::string& keyword, const std::string& what) const {
    return SchemaError(place_.pointer, keyword, what);
  }

  Schemas Sub(const std::string& keyword, const Json& schema) const {
    return {{&schema, PointerTo(place_.pointer, keyword)}};
  }

  absl::Status ReadKeyword(const std::string& name, const Json& value) {
    if (name == "type") return ReadType(value);
    if (name == "enum" || name == "const") return ReadValues(name, value);
    if (name == "minLength") return ReadCount(name, value, &facts_.min_length);
    if (name == "maxLength") return ReadCount(name, value, &facts_.max_length);
    if (name == "minItems") return ReadCount(name, value, &facts_.min_items);
    if (name == "maxItems") return ReadCount(name, value, &facts_.max_items);
    if (name == "minProperties") return ReadCount(name, value, &facts_.min_properties);
    if (name == "maxProperties") return ReadCount(name, value, &facts_.max_properties);
    if (name == "pattern" || name == "format") return ReadPattern(name, value);
    if (name == "items") return ReadItems(value);
    if (name == "prefixItems") return ReadPrefix(name, value);
    if (name == "additionalItems") return ReadSchema(name, value, &items_behind_list_);
    if (name == "uniqueItems") {
      if (!value.is_boolean()) return Fail(name, "it is true or false");
      facts_.unique = value.get<bool>();
      return absl::OkStatus();
    }
    if (name == "properties") return ReadProperties(name, value, &facts_.properties);
    if (name == "patternProperties") return ReadProperties(name, value, &facts_.by_pattern);
    if (name == "additionalProperties") {
      facts_.says_others = true;
      return ReadSchema(name, value, &facts_.others);
    }
    if (name == "required") return ReadRequired(value);
    if (name == "minimum" || name == "exclusiveMinimum") {
      return ReadBound(name, value, name != "minimum", 1, &facts_.numbers.min);
    }
    if (name == "maximum" || name == "exclusiveMaximum") {
      return ReadBound(name, value, name != "maximum", -1, &facts_.numbers.max);
    }
    if (name == "multipleOf") return ReadMultiple(value);
    return Fail(name, "this keyword is not supported");
  }

  absl::Status ReadSchema(const std::string& name, const Json& value, Schemas* out) {
    if (!value.is_object() && !value.is_boolean()) return Fail(name, "it is no schema");
    *out = Sub(name, value);
    return absl::OkStatus();
  }

  absl::Status ReadType(const Json& value) {
    facts_.types = 0;
    const Json list = value.is_array() ? value : Json::array({value});
    for (const Json& one : list) {
      const std::string name = one.is_string() ? one.get<std::string>() : "";
      const uint32_t type = name == "null"      ? kNull
                            : name == "boolean" ? kBoolean
                            : name == "integer" ? kInteger
                            : name == "number"  ? kInteger | kFraction
                            : name == "string"  ? kString
                            : name == "array"   ? kArray
                            : name == "object"  ? kObject
                                                : 0u;
      if (type == 0) return Fail("type", absl::StrCat(one.dump(), " is the name of no type"));
      facts_.types |= type;
    }
    return absl::OkStatus();
  }

  absl::Status ReadValues(const std::string& name, const Json& value) {
    if (name == "enum" && !value.is_array()) return Fail(name, "it is no list");
    if (name == "enum" && value.size() > kMaxValues) {
      return Fail(name, absl::StrCat("at most ", kMaxValues, " values are supported"));
    }
    std::vector<ListedValue> values;
    const auto add = [&](const Json& one) -> absl::Status {
      const auto id = reader_->ValueId(one);
      if (id.ok()) values.push_back({*id, &one});
      return id.status();
    };
    if (name == "const") {
      if (absl::Status s = add(value); !s.ok()) return s;
    } else {
      for (const Json& one : value) {
        if (absl::Status s = add(one); !s.ok()) return s;
      }
    }
    std::sort(values.begin(), values.end());
    const auto same = [](const ListedValue& a, const ListedValue& b) { return a.id == b.id; };
    values.erase(std::unique(values.begin(), values.end(), same), values.end());
    if (facts_.values.has_value()) {
      std::erase_if(values, [&](const ListedValue& one) {
        return !std::binary_search(facts_.values->begin(), facts_.values->end(), one);
      });
    }
    facts_.values = std::move(values);
    return absl::OkStatus();
  }

  absl::Status ReadCount(const std::string& name, const Json& value, int64_t* out) {
    constexpr int64_t kMost = int64_t{1} << 40;
    const bool whole = value.is_number_integer() ||
                       (value.is_number_float() && value.get<double>() >= 0 &&
                        value.get<double>() <= static_cast<double>(kMost) &&
                        value.get<double>() == static_cast<double>(value.get<int64_t>()));
    if (!whole || (!value.is_number_unsigned() && value.get<int64_t>() < 0)) {
      return Fail(name, "it is no count");
    }
    *out = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kMost)
               ? kMost
               : value.get<int64_t>();
    return absl::OkStatus();
  }

  absl::Status ReadPattern(const std::string& name, const Json& value) {
    if (!value.is_string()) return Fail(name, "it is no string");
    const std::string text = value.get<std::string>();
    if (name == "pattern") {
      facts_.patterns.push_back(text);
      return absl::OkStatus();
    }
    const std::string pattern = FormatPattern(text);
    if (pattern.empty()) {
      return Fail(name,
                  absl::StrCat("'", text, "' is not known: date, time, date-time, uuid, email, ",
                               "hostname, ipv4, ipv6, uri are"));
    }
    facts_.patterns.push_back(pattern);
    return absl::OkStatus();
  }

  absl::Status ReadItems(const Json& value) {
    if (value.is_array()) return ReadPrefix("items", value);
    return ReadSchema("items", value, &facts_.items);
  }

  absl::Status ReadPrefix(const std::string& name, const Json& value) {
    if (!value.is_array()) return Fail(name, "it is no list");
    for (size_t i = 0; i < value.size(); ++i) {
      Schemas item;
      const absl::Status status = ReadSchema(absl::StrCat(name, "/", i), value[i], &item);
      if (!status.ok()) return status;
      facts_.prefix.push_back(std::move(item));
    }
    return absl::OkStatus();
  }

  absl::Status ReadProperties(const std::string& name, const Json& value,
                              std::vector<std::pair<std::string, Schemas>>* out) {
    if (!value.is_object()) return Fail(name, "it is no object");
    const std::string pointer = PointerTo(place_.pointer, name);
    for (const auto& [key, schema] : value.items()) {
      if (!schema.is_object() && !schema.is_boolean()) {
        return SchemaError(pointer, key, "it is no schema");
      }
      out->push_back({key, {{&schema, PointerTo(pointer, key)}}});
    }
    return absl::OkStatus();
  }

  absl::Status ReadRequired(const Json& value) {
    if (!value.is_array()) return Fail("required", "it is no list");
    absl::flat_hash_set<std::string_view> known;
    for (const Json& name : value) {
      if (!name.is_string()) return Fail("required", "a name in it is no string");
      const auto& text = name.get_ref<const std::string&>();
      if (known.insert(text).second) facts_.required.push_back(text);
    }
    return absl::OkStatus();
  }

  // Reads a bound. The narrower one wins if there is an inclusive and an exclusive bound.
  absl::Status ReadBound(const std::string& name, const Json& value, bool exclusive, int sign,
                         std::optional<NumberBound>* out) {
    if (!value.is_number()) return Fail(name, "it is no number");
    const std::optional<Decimal> number = DecimalOf(value);
    if (!number.has_value()) return Fail(name, "a number of so many digits is not supported");
    const NumberBound bound = {*number, exclusive};
    if (out->has_value()) {
      const int order = sign * CompareDecimals(bound.value, (*out)->value);
      if (order < 0 || (order == 0 && !exclusive)) return absl::OkStatus();
    }
    *out = bound;
    return absl::OkStatus();
  }

  absl::Status ReadMultiple(const Json& value) {
    const std::optional<Decimal> number =
        value.is_number() ? DecimalOf(value.get<double>()) : std::nullopt;
    if (!number.has_value() || number->digits <= 0 || number->places != 0) {
      return Fail("multipleOf", "only whole numbers above 0 are supported");
    }
    facts_.numbers.multiple_of = number->digits;
    return absl::OkStatus();
  }

  const SchemaPlace& place_;
  SchemaReader* reader_;
  Schemas items_behind_list_;
  Facts facts_;
};

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

absl::StatusOr<Facts> SchemaReader::ReadKeywords(const SchemaPlace& place) {
  // Pays for each keyword and each entry in it, times the length of the pointer that entries copy.
  int64_t parts = 10;
  for (const auto& [name, value] : place.schema->items()) {
    parts += 1;
    if (value.is_structured() && !IsOneOf(name, kAnnotations)) {
      parts += static_cast<int64_t>(value.size());
    }
  }
  const auto length = static_cast<int64_t>(place.pointer.size());
  if (absl::Status s = Spend(parts * (1 + length / 64)); !s.ok()) return s;
  return KeywordReader(place, this).Read();
}

}  // namespace trine::constraint
