// What a template computes with. Values are cheap to copy and, but for namespaces, never change, so
// that one may be shared by any number of renderings at once.
#ifndef TRINE_RUNTIME_TEMPLATE_VALUE_H_
#define TRINE_RUNTIME_TEMPLATE_VALUE_H_

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
#include "runtime/template/text.h"

namespace trine::jinja {

class Budget;
class Value;

struct Arguments;
struct List;
struct Callable;
class Dict;
struct Namespace;

using Function = std::function<absl::StatusOr<Value>(Budget&, const Arguments&)>;

// Lists in lists in lists end here, so that whoever walks a value may do so recursively.
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
  static Value None();
  static Value Bool(bool value);
  static Value Int(int64_t value);
  static Value Float(double value);
  static Value String(Text text);
  static Value String(std::string_view bytes, bool foreign = false);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool undefined() const { return is(Kind::kUndefined); }
  bool none() const { return is(Kind::kNone); }
  bool number() const { return is(Kind::kInt) || is(Kind::kFloat); }

  // Each for a value of that kind alone.
  bool boolean() const { return std::get<bool>(data_); }
  int64_t integer() const { return std::get<int64_t>(data_); }
  double real() const { return std::get<double>(data_); }
  const Text& text() const { return *std::get<std::shared_ptr<const Text>>(data_); }
  const std::vector<Value>& list() const;
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Namespace& members() const { return *std::get<std::shared_ptr<Namespace>>(data_); }
  const Function& function() const;

  // As Python has it: empty, zero and missing things are not.
  bool Truthy() const;
  // 0 for what holds no other values. A namespace counts as such: it can hold itself.
  int height() const;
  // Bytes of a string, items of a list or dict: what going over it costs.
  int64_t size() const;
  // The same object, for what has an identity.
  bool Same(const Value& other) const { return data_ == other.data_; }

 private:
  // What a template makes of other values is paid for: see Budget. What it is given is not: Given.
  friend class Budget;
  friend struct Given;
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

// "a string", "a list": for messages.
std::string_view KindName(Value::Kind kind);

struct List {
  std::vector<Value> items;
  int height = 1;
};

struct Callable {
  Function function;
  int height = 0;
};

// Keys are strings, in the order they were set.
class Dict {
 public:
  struct Entry {
    Text key;
    Value value;
  };

  // Replaces the value where the key is there.
  void Set(Text key, Value value);
  const Value* Find(std::string_view key) const;
  const std::vector<Entry>& entries() const { return entries_; }
  int height() const { return height_; }

 private:
  const Entry* FindEntry(std::string_view key) const;

  std::vector<Entry> entries_;
  absl::flat_hash_map<std::string, size_t> index_;  // once there are many
  int height_ = 1;
};

// Lists, dicts and functions that a template is given. Whoever makes them keeps them within
// kMaxHeight.
struct Given {
  static Value OfList(std::vector<Value> items) { return Value::OfList(std::move(items)); }
  static Value OfDict(Dict dict) { return Value::OfDict(std::move(dict)); }
  static Value OfFunction(Function function) { return Value::OfFunction(std::move(function), 0); }
};

// The one thing that can be changed: what `namespace()` gives.
struct Namespace {
  Dict members;
};

// Of a call, a filter or a test.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<Text, Value>> named;  // names can come from outside, by **

  // Items given, and the bytes or items of each: what looking through them costs.
  int64_t size() const;

  // The one called `name`, or standing at `place`; nullptr when it was not given.
  const Value* Find(size_t place, std::string_view name) const;
  const Value* FindNamed(std::string_view name) const;
};

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_VALUE_H_
