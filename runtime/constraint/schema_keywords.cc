// The keywords of a schema that say something about the value itself, each for its kind of value.
#include <algorithm>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/constraint/schema_facts.h"
#include "runtime/constraint/schema_formats.h"

namespace trine::constraint {
namespace {

constexpr size_t kMaxValues = 4096;

// They say something about the schema, or something nobody checks.
constexpr std::string_view kAnnotations[] = {"$schema",
                                             "$comment",
                                             "$defs",
                                             "definitions",
                                             "$id",
                                             "id",
                                             "title",
                                             "default",
                                             "examples",
                                             "example",
                                             "readOnly",
                                             "description",
                                             "deprecated",
                                             "$anchor",
                                             "writeOnly",
                                             "contentMediaType",
                                             "contentEncoding"};
// Read by SchemaReader::ReadOne.
constexpr std::string_view kCombinators[] = {"$ref", "allOf", "anyOf", "oneOf"};

template <size_t kCount>
bool IsOneOf(const std::string& name, const std::string_view (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
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
      const absl::Status status = ReadKeyword(name, value);
      if (!status.ok()) return status;
    }
    // Before 2020-12 `items` could be a list, and `additionalItems` was what `items` is now.
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
                  absl::StrCat("'", text, "' is not known: ", std::string(FormatNames()), " are"));
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

  // With both an inclusive and an exclusive bound the narrower one counts.
  absl::Status ReadBound(const std::string& name, const Json& value, bool exclusive, int sign,
                         std::optional<NumberBound>* out) {
    std::optional<Decimal> number;
    if (value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX) {
      number = {static_cast<int64_t>(value.get<uint64_t>()), 0};
    } else if (value.is_number_integer() && !value.is_number_unsigned()) {
      number = {value.get<int64_t>(), 0};
    } else if (value.is_number_float()) {
      number = DecimalOf(value.get<double>());
    } else if (!value.is_number()) {
      return Fail(name, "it is no number");
    }
    if (!number.has_value() || number->digits == INT64_MIN) {
      return Fail(name, "a number of so many digits is not supported");
    }
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

absl::StatusOr<Facts> SchemaReader::ReadKeywords(const SchemaPlace& place) {
  // Each keyword, and whatever is listed in it; places in it are written with the schema's own.
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
