#include "runtime/constraint/schema/schema_facts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/invalid.h"
#include "runtime/constraint/schema/schema_checks.h"

namespace trine::constraint {
namespace {

constexpr size_t kMaxAlternatives = 256;
constexpr int64_t kMaxFactWork = 1 << 20;
constexpr int kMaxFactDepth = 64;  // nested references and combinators of one value

void Append(const Schemas& more, Schemas* to) {
  for (const SchemaPlace& place : more) {
    const bool there = std::any_of(
        to->begin(), to->end(), [&](const SchemaPlace& p) { return p.pointer == place.pointer; });
    if (!there) to->push_back(place);
  }
}

int64_t Smaller(int64_t a, int64_t b) {
  if (a == Expr::kNoLimit) return b;
  return b == Expr::kNoLimit ? a : std::min(a, b);
}

// Returns the narrower of two bounds. `sign` is 1 for lower bounds and -1 for upper ones.
std::optional<NumberBound> Narrower(const std::optional<NumberBound>& a,
                                    const std::optional<NumberBound>& b, int sign) {
  if (!a.has_value()) return b;
  if (!b.has_value()) return a;
  const int order = sign * CompareDecimals(a->value, b->value);
  if (order == 0) return a->exclusive ? a : b;
  return order > 0 ? a : b;
}

// Appends a text that is the same for equal values.
void AppendCanonical(const Json& value, std::string* out) {
  if (value.is_object()) {
    std::vector<std::pair<std::string_view, const Json*>> members;
    for (const auto& [name, member] : value.items()) members.emplace_back(name, &member);
    std::sort(members.begin(), members.end());
    out->push_back('{');
    for (const auto& [name, member] : members) {
      // A name that follows its length needs no escapes.
      absl::StrAppend(out, name.size(), ":", absl::string_view(name.data(), name.size()));
      AppendCanonical(*member, out);
      out->push_back(',');
    }
    out->push_back('}');
  } else if (value.is_array()) {
    out->push_back('[');
    for (const Json& item : value) {
      AppendCanonical(item, out);
      out->push_back(',');
    }
    out->push_back(']');
  } else if (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>() &&
             std::abs(value.get<double>()) < 0x1p63) {
    absl::StrAppend(out, static_cast<int64_t>(value.get<double>()));
  } else {
    out->append(value.dump());
  }
}

}  // namespace

absl::Status SchemaError(const std::string& pointer, const std::string& keyword,
                         const std::string& what) {
  return Invalid("json schema can't be honoured: ", pointer, ": ", keyword, ": ", what);
}

std::string PointerTo(const std::string& parent, const std::string& key) {
  return absl::StrCat(parent, "/", absl::StrReplaceAll(key, {{"~", "~0"}, {"/", "~1"}}));
}

std::optional<Decimal> DecimalOf(const Json& number) {
  std::optional<Decimal> decimal;
  if (number.is_number_float()) {
    decimal = DecimalOf(number.get<double>());
  } else if (!number.is_number_unsigned() || number.get<uint64_t>() <= INT64_MAX) {
    decimal = Decimal{number.get<int64_t>(), 0};
  }
  if (decimal.has_value() && decimal->digits == INT64_MIN) decimal.reset();
  return decimal;
}

const Schemas* Facts::Property(const std::string& name) const {
  for (const auto& [key, schemas] : properties) {
    if (key == name) return &schemas;
  }
  return nullptr;
}

int64_t Facts::Size() const {
  const size_t listed = values.has_value() ? values->size() : 0;
  return static_cast<int64_t>(listed + patterns.size() + prefix.size() + properties.size() +
                              by_pattern.size() + required.size());
}

void SchemaReader::NoteContradiction(const std::string& pointer, const std::string& what) {
  if (contradiction_.empty()) contradiction_ = absl::StrCat(pointer, ": ", what);
}

absl::Status SchemaReader::Spend(int64_t work) {
  spent_ += work;
  if (spent_ <= kMaxFactWork) return absl::OkStatus();
  return absl::InvalidArgumentError("json schema: there is too much in it to combine and compare");
}

absl::StatusOr<int32_t> SchemaReader::ValueId(const Json& value) {
  if (const auto it = value_ids_.find(&value); it != value_ids_.end()) return it->second;
  std::string text;
  AppendCanonical(value, &text);
  if (absl::Status s = Spend(1 + static_cast<int64_t>(text.size()) / 16); !s.ok()) return s;
  const auto next = static_cast<int32_t>(ids_by_text_.size());
  const int32_t id = ids_by_text_.try_emplace(std::move(text), next).first->second;
  value_ids_[&value] = id;
  return id;
}

absl::StatusOr<std::vector<Facts>> SchemaReader::Read(const Schemas& schemas) {
  std::vector<Facts> all(1);
  if (!schemas.empty()) all[0].pointer = schemas[0].pointer;
  for (const SchemaPlace& place : schemas) {
    const auto more = ReadOne(place, 0);
    if (!more.ok()) return more.status();
    auto joined = Join(all, *more, place.pointer);
    if (!joined.ok()) return joined.status();
    all = *std::move(joined);
  }
  return all;
}

absl::StatusOr<std::vector<Facts>> SchemaReader::ReadOne(const SchemaPlace& place, int depth) {
  if (place.schema->is_boolean()) {
    if (place.schema->get<bool>()) return std::vector<Facts>(1);
    NoteContradiction(place.pointer, "false allows no value");
    return std::vector<Facts>();
  }
  if (!place.schema->is_object()) return SchemaError(place.pointer, "schema", "it is no schema");
  if (depth > kMaxFactDepth) {
    return SchemaError(place.pointer, "$ref", "references lead round in a circle, or too far");
  }
  const auto own = ReadKeywords(place);
  if (!own.ok()) return own.status();
  std::vector<Facts> all = {*own};
  const auto join = [&](const absl::StatusOr<std::vector<Facts>>& more) -> absl::Status {
    if (!more.ok()) return more.status();
    auto joined = Join(all, *more, place.pointer);
    if (!joined.ok()) return joined.status();
    all = *std::move(joined);
    return absl::OkStatus();
  };
  if (const auto ref = place.schema->find("$ref"); ref != place.schema->end()) {
    if (!ref->is_string()) return SchemaError(place.pointer, "$ref", "it is no string");
    const auto target = Resolve(ref->get<std::string>(), place.pointer);
    if (!target.ok()) return target.status();
    if (absl::Status s = join(ReadOne(*target, depth + 1)); !s.ok()) return s;
  }
  for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
    const auto list = place.schema->find(keyword);
    if (list == place.schema->end()) continue;
    if (!list->is_array() || list->empty()) {
      return SchemaError(place.pointer, keyword, "it is no list of schemas");
    }
    const bool all_of = std::string_view(keyword) == "allOf";
    std::vector<Facts> any;
    std::vector<std::vector<Facts>> branches;
    for (size_t i = 0; i < list->size(); ++i) {
      const SchemaPlace branch = {&(*list)[i],
                                  absl::StrCat(PointerTo(place.pointer, keyword), "/", i)};
      auto facts = ReadOne(branch, depth + 1);
      if (!facts.ok()) return facts.status();
      if (all_of) {
        if (absl::Status s = join(facts); !s.ok()) return s;
        continue;
      }
      branches.push_back(*facts);
      any.insert(any.end(), facts->begin(), facts->end());
      if (any.size() > kMaxAlternatives) {
        return SchemaError(place.pointer, keyword, "too many alternatives");
      }
    }
    if (std::string_view(keyword) == "oneOf") {
      for (std::vector<Facts>& branch : branches) {
        auto joined = Join(all, branch, place.pointer);
        if (!joined.ok()) return joined.status();
        branch = *std::move(joined);
      }
      if (absl::Status s = CheckDisjoint(branches, place.pointer); !s.ok()) return s;
    }
    if (!all_of) {
      if (absl::Status s = join(any); !s.ok()) return s;
    }
  }
  return all;
}

absl::Status SchemaReader::CheckDisjoint(const std::vector<std::vector<Facts>>& branches,
                                         const std::string& pointer) {
  // A schema that is read only to be compared may be too wide, so oneOf may count as anyOf there.
  // It is checked when the schema is read to be compiled.
  if (comparing_) return absl::OkStatus();
  comparing_ = true;
  const absl::Cleanup done = [this] { comparing_ = false; };
  for (size_t i = 0; i < branches.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      for (const Facts& a : branches[i]) {
        for (const Facts& b : branches[j]) {
          const auto disjoint = AreDisjoint(this, a, b, 0);
          if (!disjoint.ok()) return disjoint.status();
          if (!*disjoint) {
            return SchemaError(pointer, "oneOf",
                               absl::StrCat("a value might satisfy both ", j, " and ", i,
                                            ": use anyOf, or tell them apart by a required "
                                            "property with const"));
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SchemaPlace> SchemaReader::Resolve(const std::string& reference,
                                                  const std::string& from) {
  if (reference != "#" && reference.rfind("#/", 0) != 0) {
    return SchemaError(from, "$ref",
                       absl::StrCat("'", reference,
                                    "': only places in the same document, such as "
                                    "#/$defs/name, are supported"));
  }
  const Json* at = &root_;
  std::string pointer = "#";
  for (size_t begin = 2; begin <= reference.size() && reference != "#";) {
    const size_t end = std::min(reference.find('/', begin), reference.size());
    const std::string key = absl::StrReplaceAll(reference.substr(begin, end - begin),
                                                {{"~1", "/"}, {"~0", "~"}, {"%25", "%"}});
    const Json* next = nullptr;
    if (at->is_object()) {
      // find() searches the names linearly.
      if (absl::Status s = Spend(1 + static_cast<int64_t>(at->size()) / 64); !s.ok()) return s;
      const auto it = at->find(key);
      if (it != at->end()) next = &*it;
    } else if (at->is_array() && !key.empty() && key.size() < 7 &&
               key.find_first_not_of("0123456789") == key.npos) {
      const size_t index = static_cast<size_t>(std::stoi(key));
      if (index < at->size()) next = &(*at)[index];
    }
    if (next == nullptr) return SchemaError(from, "$ref", absl::StrCat("there is no ", reference));
    at = next;
    pointer = PointerTo(pointer, key);
    begin = end + 1;
  }
  return SchemaPlace{at, pointer};
}

absl::StatusOr<std::vector<Facts>> SchemaReader::Join(const std::vector<Facts>& a,
                                                      const std::vector<Facts>& b,
                                                      const std::string& pointer) {
  if (a.size() * b.size() > kMaxAlternatives) {
    return SchemaError(pointer, "anyOf", "too many alternatives");
  }
  std::vector<Facts> out;
  for (const Facts& left : a) {
    for (const Facts& right : b) {
      if (absl::Status s = Spend(left.Size() + right.Size() + 1); !s.ok()) return s;
      auto both = JoinTwo(left, right);
      if (!both.ok()) return both.status();
      if (both->types == 0) {
        NoteContradiction(pointer, "type: no type is left");
        continue;
      }
      out.push_back(*std::move(both));
    }
  }
  return out;
}

absl::StatusOr<Facts> SchemaReader::JoinTwo(const Facts& a, const Facts& b) {
  Facts out = a;
  if (out.pointer.empty()) out.pointer = b.pointer;
  out.types = a.types & b.types;
  if (b.values.has_value()) {
    if (!a.values.has_value()) {
      out.values = b.values;
    } else {
      std::erase_if(*out.values, [&](const ListedValue& value) {
        return !std::binary_search(b.values->begin(), b.values->end(), value);
      });
    }
  }
  out.numbers.min = Narrower(a.numbers.min, b.numbers.min, 1);
  out.numbers.max = Narrower(a.numbers.max, b.numbers.max, -1);
  const int64_t common = std::gcd(a.numbers.multiple_of, b.numbers.multiple_of);
  if (a.numbers.multiple_of / common > INT64_MAX / b.numbers.multiple_of) {
    return SchemaError(out.pointer, "multipleOf", "the least common multiple is too large");
  }
  out.numbers.multiple_of = a.numbers.multiple_of / common * b.numbers.multiple_of;

  out.min_length = std::max(a.min_length, b.min_length);
  out.max_length = Smaller(a.max_length, b.max_length);
  out.patterns.insert(out.patterns.end(), b.patterns.begin(), b.patterns.end());

  for (size_t i = 0; i < std::max(a.prefix.size(), b.prefix.size()); ++i) {
    if (i >= out.prefix.size()) out.prefix.push_back(a.items);
    Append(i < b.prefix.size() ? b.prefix[i] : b.items, &out.prefix[i]);
  }
  Append(b.items, &out.items);
  out.min_items = std::max(a.min_items, b.min_items);
  out.max_items = Smaller(a.max_items, b.max_items);
  out.unique = a.unique || b.unique;

  const auto says = [](const Facts& f) {
    return !f.properties.empty() || !f.by_pattern.empty() || f.says_others;
  };
  if (says(a) && says(b) && (!a.by_pattern.empty() || !b.by_pattern.empty())) {
    return SchemaError(out.pointer, "patternProperties",
                       "it can't be combined with another schema's properties");
  }
  const auto by_name = [](const Facts& f) {
    absl::flat_hash_map<std::string_view, const Schemas*> map;
    for (const auto& [name, schemas] : f.properties) map.try_emplace(name, &schemas);
    return map;
  };
  const auto in_a = by_name(a), in_b = by_name(b);
  for (auto& [name, schemas] : out.properties) {
    const auto other = in_b.find(name);
    Append(other != in_b.end() ? *other->second : b.others, &schemas);
  }
  for (const auto& [name, schemas] : b.properties) {
    if (in_a.contains(name)) continue;
    Schemas both = a.others;
    Append(schemas, &both);
    out.properties.push_back({name, std::move(both)});
  }
  if (a.by_pattern.empty()) out.by_pattern = b.by_pattern;
  Append(b.others, &out.others);
  out.says_others = a.says_others || b.says_others;
  const absl::flat_hash_set<std::string_view> required(a.required.begin(), a.required.end());
  for (const std::string& name : b.required) {
    if (!required.contains(name)) out.required.push_back(name);
  }
  out.min_properties = std::max(a.min_properties, b.min_properties);
  out.max_properties = Smaller(a.max_properties, b.max_properties);
  return out;
}

}  // namespace trine::constraint
