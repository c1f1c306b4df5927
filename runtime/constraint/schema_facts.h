// What a JSON Schema says about a value, with references followed, allOf joined and anyOf and oneOf
// written out as alternatives.
#ifndef TRINE_RUNTIME_CONSTRAINT_SCHEMA_FACTS_H_
#define TRINE_RUNTIME_CONSTRAINT_SCHEMA_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/constraint/grammar.h"
#include "runtime/constraint/schema_numbers.h"

namespace trine::constraint {

using Json = nlohmann::ordered_json;

// Schemas that a value must satisfy all of, by their place in the document. None: any value.
struct SchemaPlace {
  const Json* schema;
  std::string pointer;  // "#/properties/name"
};
using Schemas = std::vector<SchemaPlace>;

std::string PointerTo(const std::string& parent, const std::string& key);

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

// A value that the document writes out. Equal ones have the same id, as JSON Schema understands it:
// 1 is 1.0, and the order of properties does not count.
struct ListedValue {
  int32_t id;
  const Json* value;
  friend bool operator<(const ListedValue& a, const ListedValue& b) { return a.id < b.id; }
};

// One alternative.
struct Facts {
  std::string pointer;  // of the schema it was read from
  uint32_t types = kAnyType;
  std::optional<std::vector<ListedValue>> values;  // enum and const; ascending, each once

  NumberRange numbers;

  int64_t min_length = 0;
  int64_t max_length = Expr::kNoLimit;
  std::vector<std::string> patterns;  // format too

  std::vector<Schemas> prefix;
  Schemas items;
  int64_t min_items = 0;
  int64_t max_items = Expr::kNoLimit;
  bool unique = false;

  std::vector<std::pair<std::string, Schemas>> properties;  // in the schema's order
  std::vector<std::pair<std::string, Schemas>> by_pattern;
  Schemas others;            // properties of other names
  bool says_others = false;  // additionalProperties was given
  std::vector<std::string> required;
  int64_t min_properties = 0;
  int64_t max_properties = Expr::kNoLimit;

  // Looks at every name; nullptr where it is not named.
  const Schemas* Property(const std::string& name) const;
  int64_t Size() const;  // of the lists in it
};

// Reads schemas of one document.
class SchemaReader {
 public:
  explicit SchemaReader(const Json& root) : root_(root) {}

  // A value must satisfy one of them. None: no value can. INVALID_ARGUMENT for a keyword that is
  // not supported, or has a value it can't have.
  absl::StatusOr<std::vector<Facts>> Read(const Schemas& schemas);

  // Counts what is done for one document; an error when it is too much.
  absl::Status Spend(int64_t work);

  // Of a value in the document.
  absl::StatusOr<int32_t> ValueId(const Json& value);

  // Why alternatives were left out: the first contradiction met, for messages.
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

absl::Status SchemaError(const std::string& pointer, const std::string& keyword,
                         const std::string& what);

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_SCHEMA_FACTS_H_
