// The key-value part of a GGUF file: typed values that view the file's memory.
// Immutable once read; any thread may read. Views live as long as the file does.
#ifndef TRINE_RUNTIME_GGUF_METADATA_H_
#define TRINE_RUNTIME_GGUF_METADATA_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace trine::gguf {

// Integers of every width are int64_t or, above its range, uint64_t; both floats are double.
struct Value;
struct Array {
  uint32_t element_type = 0;  // GGUF's number of it: ValueType in format.h
  std::vector<Value> nested;  // arrays of arrays only
  // Integers and bools. Elements of a uint64 array above the range of int64_t keep their bits.
  std::vector<int64_t> integers;
  std::vector<double> floats;
  std::vector<std::string_view> strings;
  uint64_t size = 0;
};
struct Value {
  uint32_t type = 0;  // GGUF's number of it: ValueType in format.h
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string_view, Array> value;
};

class Metadata {
 public:
  struct Entry {
    std::string_view key;
    Value value;
  };
  const std::vector<Entry>& entries() const { return entries_; }  // in file order
  const Value* Find(std::string_view key) const;                  // null when there is none
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  // NOT_FOUND when the key is missing, INVALID_ARGUMENT when it has another type or is out of
  // range: both name the key.
  absl::StatusOr<std::string_view> String(std::string_view key) const;
  absl::StatusOr<int64_t> Integer(std::string_view key, int64_t min, int64_t max) const;
  absl::StatusOr<double> Float(std::string_view key) const;  // an integer serves too
  absl::StatusOr<bool> Bool(std::string_view key) const;
  absl::StatusOr<const Array*> ArrayOf(std::string_view key) const;

  // The same with a default for a missing key; another type is still an error.
  absl::StatusOr<std::string_view> StringOr(std::string_view key, std::string_view fallback) const;
  absl::StatusOr<int64_t> IntegerOr(std::string_view key, int64_t min, int64_t max,
                                    int64_t fallback) const;
  absl::StatusOr<double> FloatOr(std::string_view key, double fallback) const;
  absl::StatusOr<bool> BoolOr(std::string_view key, bool fallback) const;

 private:
  friend class MetadataReader;

  absl::StatusOr<const Value*> Get(std::string_view key) const;

  std::vector<Entry> entries_;
  // Abseil's own string_view: its hash is seeded, so a file can not choose keys that collide.
  absl::flat_hash_map<absl::string_view, uint32_t> index_;
};

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_METADATA_H_
