// Reads the conditions that a JSON Schema sets for a value. SchemaReader follows references, joins
// allOf, and turns anyOf and oneOf into alternatives. The conditions of an alternative are its
// Facts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/constraint/grammar/grammar.h"
#include "runtime/constraint/schema/schema_numbers.h"

namespace trine::constraint {

using Json = nlohmann::ordered_json;

// A schema and its place in the document. A value must satisfy all entries of a Schemas; an empty
// Schemas allows any value.
struct SchemaPlace {
  const Json* schema;
  std::string pointer;  // a JSON pointer, such as "#/properties/name"
};
using Schemas = std::vector<SchemaPlace>;

// Returns the JSON pointer of a member of the object at `parent`.
std::string PointerTo(const std::string& parent, const std::string& key);

// The types of values, as bits.
enum JsonType : uint32_t {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kFraction = 8,  // a number that is no integer
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAnyType = 127,
};

// A value that the document contains. Values that JSON Schema treats as equal have the same id: 1
// equals 1.0, and the order of properties makes no difference.
struct ListedValue {
  int32_t id;
  const Json* value;
  friend bool operator<(const ListedValue& a, const ListedValue& b) { return a.id < b.id; }
};

// Converts a number exactly. Returns nullopt if it has too many digits.
std::optional<Decimal> DecimalOf(const Json& number);

// All conditions of one alternative. A value must satisfy those for its type, and `types` and
// `values`. They may contradict each other: then no value satisfies them.
struct Facts {
  std::string pointer;        // the place of the schema that was read
  uint32_t types = kAnyType;  // the types that are allowed: bits of JsonType
  // The values that enum and const allow, by ascending ids without duplicates; nullopt: any value.
  std::optional<std::vector<ListedValue>> values;

  NumberRange numbers;

  int64_t min_length = 0;  // in characters
  int64_t max_length = Expr::kNoLimit;
  std::vector<std::string> patterns;  // all must match; includes the pattern of `format`

  std::vector<Schemas> prefix;  // the schemas of an array's first items
  Schemas items;                // the schemas of each later item
  int64_t min_items = 0;
  int64_t max_items = Expr::kNoLimit;
  bool unique = false;  // no two items may be equal

  std::vector<std::pair<std::string, Schemas>> properties;  // in the schema's order
  std::vector<std::pair<std::string, Schemas>> by_pattern;  // for properties whose names match
  Schemas others;            // for properties that are in neither list
  bool says_others = false;  // true: the schema has additionalProperties
  std::vector<std::string> required;
  int64_t min_properties = 0;
  int64_t max_properties = Expr::kNoLimit;

  // Returns the schemas of a property, or nullptr if `properties` lacks it. Searches linearly.
  const Schemas* Property(const std::string& name) const;
  int64_t Size() const;  // the number of entries in all lists
};

// Reads the schemas of one document, which must outlive the reader.
class SchemaReader {
 public:
  explicit SchemaReader(const Json& root) : root_(root) {}

  // Returns the alternatives, of which a value must satisfy one; an empty list allows no value.
  // Returns INVALID_ARGUMENT, naming the place, if a keyword is not supported or has an invalid
  // value, if a value might satisfy several schemas of a oneOf, or if there are too many
  // alternatives. Returns it, too, if the work is over the limit (Spend).
  absl::StatusOr<std::vector<Facts>> Read(const Schemas& schemas);

  // Adds `work` to the work done for this document, which is limited, because a small schema can
  // take very long. Returns INVALID_ARGUMENT if the total is over the limit.
  absl::Status Spend(int64_t work);

  // Returns the id of a value in the document (see ListedValue). Returns INVALID_ARGUMENT if the
  // work is over the limit.
  absl::StatusOr<int32_t> ValueId(const Json& value);

  // Returns why an alternative allows no value, for messages: the first reason that was noted.
  // Returns
  // "" if there was none.
  const std::string& contradiction() const { return contradiction_; }
  void NoteContradiction(const std::string& pointer, const std::string& what);

 private:
  absl::StatusOr<std::vector<Facts>> ReadOne(const SchemaPlace& place, int depth);
  absl::StatusOr<Facts> ReadKeywords(const SchemaPlace& place);
  absl::StatusOr<SchemaPlace> Resolve(const std::string& reference, const std::string& from);
  absl::Status CheckDisjoint(const std::vector<std::vector<Facts>>& branches,
                             const std::string& pointer);
  absl::StatusOr<std::vector<Facts>> Join(const std::vector<Facts>& a, const std::vector<Facts>& b,
                                          const std::string& pointer);
  absl::StatusOr<Facts> JoinTwo(const Facts& a, const Facts& b);

  const Json& root_;
  std::string contradiction_;
  int64_t spent_ = 0;
  bool comparing_ = false;
  absl::flat_hash_map<const Json*, int32_t> value_ids_;
  absl::flat_hash_map<std::string, int32_t> ids_by_text_;
};

// Returns a regular expression that matches only texts of a `format`, but not all of them. Returns
// "" for an unknown format.
std::string FormatPattern(std::string_view format);

// Returns INVALID_ARGUMENT for a keyword of the schema at `pointer`: says what is wrong with it.
absl::Status SchemaError(const std::string& pointer, const std::string& keyword,
                         const std::string& what);

}  // namespace trine::constraint
