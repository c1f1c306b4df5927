#include "runtime/constraint/schema/schema_checks.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/constraint/grammar/grammar.h"

namespace trine::constraint {
namespace {

// The cost of making an automaton, in units of SchemaReader::Spend.
constexpr int64_t kPatternWork = 2000;
constexpr int kMaxComparedDepth = 4;          // nesting to which properties are compared
constexpr int64_t kMaxCountedLength = 10000;  // longest length limit of a string with a pattern

uint32_t TypeOf(const Json& value) {
  switch (value.type()) {
    case Json::value_t::boolean:
      return kBoolean;
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return kInteger;
    case Json::value_t::number_float:
      return std::floor(value.get<double>()) == value.get<double>() ? kInteger : kFraction;
    case Json::value_t::string:
      return kString;
    case Json::value_t::array:
      return kArray;
    case Json::value_t::object:
      return kObject;
    default:
      return kNull;
  }
}

int64_t Characters(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
}

bool Within(int64_t count, int64_t min, int64_t max) {
  return count >= min && (max == Expr::kNoLimit || count <= max);
}

bool RangesDisjoint(int64_t min_a, int64_t max_a, int64_t min_b, int64_t max_b) {
  return (max_a != Expr::kNoLimit && max_a < min_b) || (max_b != Expr::kNoLimit && max_b < min_a);
}

bool NumberSatisfies(const NumberRange& range, const Json& value) {
  if (!range.min.has_value() && !range.max.has_value() && range.multiple_of == 1) return true;
  const std::optional<Decimal> number = DecimalOf(value);
  if (!number.has_value()) return false;
  if (range.min.has_value()) {
    const int order = CompareDecimals(*number, range.min->value);
    if (order < 0 || (order == 0 && range.min->exclusive)) return false;
  }
  if (range.max.has_value()) {
    const int order = CompareDecimals(*number, range.max->value);
    if (order > 0 || (order == 0 && range.max->exclusive)) return false;
  }
  return range.multiple_of == 1 || (number->places == 0 && number->digits % range.multiple_of == 0);
}

bool NumbersDisjoint(const NumberRange& a, const NumberRange& b) {
  const auto below = [](const std::optional<NumberBound>& max,
                        const std::optional<NumberBound>& min) {
    if (!max.has_value() || !min.has_value()) return false;
    const int order = CompareDecimals(max->value, min->value);
    return order < 0 || (order == 0 && (max->exclusive || min->exclusive));
  };
  return below(a.max, b.min) || below(b.max, a.min);
}

// Pays for a linear search for each of `names` names among `among` others.
absl::Status SpendOnNames(SchemaReader* reader, size_t names, size_t among) {
  return reader->Spend(static_cast<int64_t>(names * among / 64));
}

// Returns the schemas of the property `name`. Ignores patternProperties.
const Schemas& SchemasOf(const Facts& facts, const std::string& name) {
  const Schemas* named = facts.Property(name);
  return named != nullptr ? *named : facts.others;
}

absl::StatusOr<bool> SubSatisfies(SchemaReader* reader, const Schemas& schemas, const Json& value) {
  const auto alternatives = reader->Read(schemas);
  if (!alternatives.ok()) return alternatives.status();
  for (const Facts& facts : *alternatives) {
    const auto good = Satisfies(reader, facts, value);
    if (!good.ok() || *good) return good;
  }
  return false;
}

absl::StatusOr<bool> ArraySatisfies(SchemaReader* reader, const Facts& facts, const Json& value) {
  if (!Within(static_cast<int64_t>(value.size()), facts.min_items, facts.max_items)) return false;
  absl::flat_hash_set<int32_t> ids;
  for (size_t i = 0; i < value.size(); ++i) {
    const Schemas& schemas = i < facts.prefix.size() ? facts.prefix[i] : facts.items;
    const auto good = SubSatisfies(reader, schemas, value[i]);
    if (!good.ok() || !*good) return good;
    if (!facts.unique) continue;
    const auto id = reader->ValueId(value[i]);
    if (!id.ok()) return id.status();
    if (!ids.insert(*id).second) return false;
  }
  return true;
}

absl::StatusOr<bool> ObjectSatisfies(SchemaReader* reader, const Facts& facts, const Json& value) {
  if (!Within(static_cast<int64_t>(value.size()), facts.min_properties, facts.max_properties)) {
    return false;
  }
  const size_t names = facts.required.size() + facts.properties.size() + 1;
  if (absl::Status s = SpendOnNames(reader, names, value.size()); !s.ok()) return s;
  for (const std::string& name : facts.required) {
    if (!value.contains(name)) return false;
  }
  for (const auto& [name, property] : value.items()) {
    Schemas schemas;
    for (const auto& [pattern, by_pattern] : facts.by_pattern) {
      if (absl::Status s = reader->Spend(kPatternWork); !s.ok()) return s;
      const auto dfa = PatternDfa(pattern, facts.pointer, "patternProperties");
      if (!dfa.ok()) return dfa.status();
      if (dfa->Accepts(name)) schemas.insert(schemas.end(), by_pattern.begin(), by_pattern.end());
    }
    if (const Schemas* named = facts.Property(name); named != nullptr) {
      schemas.insert(schemas.end(), named->begin(), named->end());
    } else if (schemas.empty()) {
      schemas = facts.others;
    }
    const auto good = SubSatisfies(reader, schemas, property);
    if (!good.ok() || !*good) return good;
  }
  return true;
}

// Looks for a property that `a` or `b` requires and that has no value which satisfies both.
absl::StatusOr<bool> ObjectsDisjoint(SchemaReader* reader, const Facts& a, const Facts& b,
                                     int depth) {
  if (RangesDisjoint(a.min_properties, a.max_properties, b.min_properties, b.max_properties)) {
    return true;
  }
  if (depth >= kMaxComparedDepth || !a.by_pattern.empty() || !b.by_pattern.empty()) return false;
  std::vector<std::string> names = a.required;
  names.insert(names.end(), b.required.begin(), b.required.end());
  const size_t named = a.properties.size() + b.properties.size() + 1;
  if (absl::Status s = SpendOnNames(reader, names.size(), named); !s.ok()) return s;
  for (const std::string& name : names) {
    const auto left = reader->Read(SchemasOf(a, name));
    if (!left.ok()) return left.status();
    const auto right = reader->Read(SchemasOf(b, name));
    if (!right.ok()) return right.status();
    bool disjoint = true;
    for (const Facts& l : *left) {
      for (const Facts& r : *right) {
        const auto pair = AreDisjoint(reader, l, r, depth + 1);
        if (!pair.ok()) return pair.status();
        disjoint = disjoint && *pair;
      }
    }
    if (disjoint) return true;
  }
  return false;
}

absl::StatusOr<bool> StringsDisjoint(SchemaReader* reader, const Facts& a, const Facts& b) {
  if (RangesDisjoint(a.min_length, a.max_length, b.min_length, b.max_length)) return true;
  if (a.patterns.empty() || b.patterns.empty()) return false;
  if (absl::Status s = reader->Spend(4 * kPatternWork); !s.ok()) return s;
  const auto left = StringsOf(a);
  if (!left.ok()) return left.status();
  const auto right = StringsOf(b);
  if (!right.ok()) return right.status();
  const auto both = left->Intersect(*right);
  if (!both.ok()) return both.status();
  return both->empty();
}

absl::StatusOr<bool> NoneSatisfies(SchemaReader* reader, const std::vector<ListedValue>& values,
                                   const Facts& facts) {
  for (const auto& [id, value] : values) {
    const auto good = Satisfies(reader, facts, *value);
    if (!good.ok()) return good.status();
    if (*good) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<CharDfa> PatternDfa(const std::string& pattern, const std::string& pointer,
                                   const std::string& keyword) {
  const auto failed = [&](const absl::Status& status) {
    return SchemaError(pointer, keyword, absl::StrCat("'", pattern, "': ", status.message()));
  };
  const auto expr = ParseRegex(pattern);
  if (!expr.ok()) return failed(expr.status());
  auto dfa = CharDfa::Of(**expr);
  if (!dfa.ok()) return failed(dfa.status());
  return dfa;
}

absl::StatusOr<CharDfa> StringsOf(const Facts& facts) {
  CharDfa dfa = CharDfa::Any();
  for (const std::string& pattern : facts.patterns) {
    const auto one = PatternDfa(pattern, facts.pointer, "pattern");
    if (!one.ok()) return one.status();
    auto both = dfa.Intersect(*one);
    if (!both.ok())
      return SchemaError(facts.pointer, "pattern", std::string(both.status().message()));
    dfa = *std::move(both);
  }
  if (facts.min_length == 0 && facts.max_length == Expr::kNoLimit) return dfa;
  if (std::max(facts.min_length, facts.max_length) > kMaxCountedLength) {
    return SchemaError(facts.pointer, "maxLength",
                       absl::StrCat("with a pattern or format at most ", kMaxCountedLength));
  }
  auto both = dfa.Intersect(CharDfa::Lengths(facts.min_length, facts.max_length));
  if (!both.ok()) {
    return SchemaError(facts.pointer, "maxLength", std::string(both.status().message()));
  }
  return both;
}

absl::StatusOr<bool> Satisfies(SchemaReader* reader, const Facts& facts, const Json& value) {
  if (absl::Status s = reader->Spend(1); !s.ok()) return s;
  const uint32_t type = TypeOf(value);
  if ((facts.types & type) == 0) return false;
  if (facts.values.has_value()) {
    const auto id = reader->ValueId(value);
    if (!id.ok()) return id.status();
    if (!std::binary_search(facts.values->begin(), facts.values->end(), ListedValue{*id, &value})) {
      return false;
    }
  }
  switch (type) {
    case kInteger:
    case kFraction:
      return NumberSatisfies(facts.numbers, value);
    case kString: {
      const std::string text = value.get<std::string>();
      if (!Within(Characters(text), facts.min_length, facts.max_length)) return false;
      for (const std::string& pattern : facts.patterns) {
        if (absl::Status s = reader->Spend(kPatternWork); !s.ok()) return s;
        const auto dfa = PatternDfa(pattern, facts.pointer, "pattern");
        if (!dfa.ok()) return dfa.status();
        if (!dfa->Accepts(text)) return false;
      }
      return true;
    }
    case kArray:
      return ArraySatisfies(reader, facts, value);
    case kObject:
      return ObjectSatisfies(reader, facts, value);
    default:
      return true;
  }
}

absl::StatusOr<bool> AreDisjoint(SchemaReader* reader, const Facts& a, const Facts& b, int depth) {
  const uint32_t common = a.types & b.types;
  if (common == 0) return true;
  if (absl::Status s = reader->Spend(1); !s.ok()) return s;
  if (a.values.has_value()) return NoneSatisfies(reader, *a.values, b);
  if (b.values.has_value()) return NoneSatisfies(reader, *b.values, a);
  if ((common & (kNull | kBoolean)) != 0) return false;
  if ((common & (kInteger | kFraction)) != 0 && !NumbersDisjoint(a.numbers, b.numbers)) {
    return false;
  }
  if ((common & kString) != 0) {
    const auto disjoint = StringsDisjoint(reader, a, b);
    if (!disjoint.ok() || !*disjoint) return disjoint;
  }
  if ((common & kArray) != 0 &&
      !RangesDisjoint(a.min_items, a.max_items, b.min_items, b.max_items)) {
    return false;
  }
  if ((common & kObject) != 0) return ObjectsDisjoint(reader, a, b, depth);
  return true;
}

}  // namespace trine::constraint
