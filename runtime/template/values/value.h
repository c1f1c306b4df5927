// The values of a template. They are cheap to copy and, except for namespaces, never change, so any
// number of renderings may share one at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "runtime/template/values/text.h"

namespace trine::jinja {

class Budget;
class Value;

struct Arguments;
struct List;
struct Callable;
class Dict;
struct Namespace;

using Function = std::function<absl::StatusOr<Value>(Budget&, const Arguments&)>;

// Limits the nesting of lists, so that code may walk a value recursively.
inline constexpr int kMaxHeight = 128;

class Value {
 public:
  enum class Kind {
    kUndefined,
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kList,
    kDict,
    kNamespace,
    kFunction,
  };

  Value() = default;  // undefined
  static Value None() { return Of(nullptr); }
  static Value Bool(bool value) { return Of(value); }
  static Value Int(int64_t value) { return Of(value); }
  static Value Float(double value) { return Of(value); }
  static Value String(Text text);
  static Value String(std::string_view bytes, bool foreign = false);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool undefined() const { return is(Kind::kUndefined); }
  bool none() const { return is(Kind::kNone); }
  bool number() const { return is(Kind::kInt) || is(Kind::kFloat); }

  // REQUIRES: the value has this kind.
  bool boolean() const { return std::get<bool>(data_); }
  int64_t integer() const { return std::get<int64_t>(data_); }
  double real() const { return std::get<double>(data_); }
  const Text& text() const { return *std::get<std::shared_ptr<const Text>>(data_); }
  const std::vector<Value>& list() const;
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Namespace& members() const { return *std::get<std::shared_ptr<Namespace>>(data_); }
  const Function& function() const;

  // Returns false for empty, zero and missing values, as Python does.
  bool Truthy() const;
  // Returns the nesting depth: 0 if it holds no other values. A namespace counts as 0, because it
  // can hold itself.
  int height() const;
  // Returns the bytes of a string or the items of a list or dict: the cost of reading it.
  int64_t size() const;
  // Returns whether both are the same object, for values that have an identity.
  bool Same(const Value& other) const { return data_ == other.data_; }

 private:
  // Budget makes the values that a template computes, and lets it pay for them. Given makes the
  // values that a template is given, which are free.
  friend class Budget;
  friend struct Given;
  template <class Data>
  static Value Of(Data data) {
    Value value;
    value.data_ = std::move(data);
    return value;
  }
  static Value OfList(std::vector<Value> items);
  static Value OfDict(Dict dict);
  static Value OfNamespace(std::shared_ptr<Namespace> members);
  static Value OfFunction(Function function, int height);

  // In the order of Kind.
  std::variant<std::monostate, std::nullptr_t, bool, int64_t, double, std::shared_ptr<const Text>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Namespace>,
               std::shared_ptr<const Callable>>
      data_;
};

// Returns "a string", "a list", ...: for messages.
std::string_view KindName(Value::Kind kind);

struct List {
  std::vector<Value> items;
  int height = 1;
};

struct Callable {
  Function function;
  int height = 0;
};

// A dict with its entries in the order in which they were set. Keys are strings.
class Dict {
 public:
  struct Entry {
    Text key;
    Value value;
  };

  // Replaces the value if the key exists.
  void Set(Text key, Value value);
  const Value* Find(std::string_view key) const;
  const std::vector<Entry>& entries() const { return entries_; }
  int height() const { return height_; }

 private:
  const Entry* FindEntry(std::string_view key) const;

  std::vector<Entry> entries_;
  absl::flat_hash_map<std::string, size_t> index_;  // only of large dicts
  int height_ = 1;
};

// Makes the lists, dicts and functions that a template is given. REQUIRES: their heights are at
// most kMaxHeight.
struct Given {
  static Value OfList(std::vector<Value> items) { return Value::OfList(std::move(items)); }
  static Value OfDict(Dict dict) { return Value::OfDict(std::move(dict)); }
  static Value OfFunction(Function function) { return Value::OfFunction(std::move(function), 0); }
};

// The value that `namespace()` makes. It is the only kind of value that can change.
struct Namespace {
  Dict members;
};

// The arguments of a call, a filter or a test.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<Text, Value>> named;  // names from ** can be foreign

  // Returns the number of arguments plus the size of each: the cost of looking through them.
  int64_t size() const;

  // Returns the argument called `name` or at `place`, or nullptr if it was not given.
  const Value* Find(size_t place, std::string_view name) const;
  const Value* FindNamed(std::string_view name) const;
};

}  // namespace trine::jinja
