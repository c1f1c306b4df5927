// The key-value pairs of a GGUF file: typed values that view the file's memory, so they are valid
// as long as the file. Immutable once read, so any thread may read.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace trine::gguf {

class Cursor;

// A value of the file. Integers of every width become int64_t or, if they don't fit, uint64_t. Both
// float types become double. An Array fills the one vector that suits its elements.
struct Value;
struct Array {
  uint32_t element_type = 0;  // a ValueType (format.h)
  std::vector<Value> nested;  // arrays of arrays only
  // The elements of an array of integers or bools. An element of a uint64 array that doesn't fit in
  // int64_t keeps its bits.
  std::vector<int64_t> integers;
  std::vector<double> floats;
  std::vector<std::string_view> strings;
  uint64_t size = 0;
};
struct Value {
  uint32_t type = 0;  // a ValueType (format.h)
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string_view, Array> value;
};

class Metadata {
 public:
  struct Entry {
    std::string_view key;
    Value value;
  };
  const std::vector<Entry>& entries() const { return entries_; }  // in file order
  const Value* Find(std::string_view key) const;                  // null: there is no such key
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  // Return the value of a key. Return NOT_FOUND if the key is missing, and INVALID_ARGUMENT if the
  // value has another type or is out of range. Both messages name the key.
  absl::StatusOr<std::string_view> String(std::string_view key) const;
  absl::StatusOr<int64_t> Integer(std::string_view key, int64_t min, int64_t max) const;
  absl::StatusOr<double> Float(std::string_view key) const;  // accepts integers, too
  absl::StatusOr<bool> Bool(std::string_view key) const;
  absl::StatusOr<const Array*> ArrayOf(std::string_view key) const;

  // Return the value of a key, or `fallback` if the key is missing. Return INVALID_ARGUMENT if the
  // value has another type or is out of range.
  absl::StatusOr<std::string_view> StringOr(std::string_view key, std::string_view fallback) const;
  absl::StatusOr<int64_t> IntegerOr(std::string_view key, int64_t min, int64_t max,
                                    int64_t fallback) const;
  absl::StatusOr<double> FloatOr(std::string_view key, double fallback) const;
  absl::StatusOr<bool> BoolOr(std::string_view key, bool fallback) const;

 private:
  friend absl::StatusOr<Metadata> ReadMetadata(uint64_t count, Cursor* cursor);

  absl::StatusOr<const Value*> Get(std::string_view key) const;

  std::vector<Entry> entries_;
  // absl::string_view, because its hash is seeded: a file can't choose keys that collide.
  absl::flat_hash_map<absl::string_view, uint32_t> index_;
};

// Reads `count` key-value pairs. `cursor` must be at the first key and is left after the last
// value. Before anything is allocated, its size is checked against the number of bytes left.
absl::StatusOr<Metadata> ReadMetadata(uint64_t count, Cursor* cursor);

}  // namespace trine::gguf
