#include "runtime/template/value.h"

#include <algorithm>

namespace trine::jinja {
namespace {

// Dicts up to this size are searched from the front.
constexpr size_t kSmallDict = 12;

template <class T>
std::shared_ptr<const T> Share(T value) {
  return std::make_shared<const T>(std::move(value));
}

}  // namespace

Value Value::None() {
  Value v;
  v.data_ = nullptr;
  return v;
}

Value Value::Bool(bool value) {
  Value v;
  v.data_ = value;
  return v;
}

Value Value::Int(int64_t value) {
  Value v;
  v.data_ = value;
  return v;
}

Value Value::Float(double value) {
  Value v;
  v.data_ = value;
  return v;
}

Value Value::String(Text text) {
  Value v;
  v.data_ = Share(std::move(text));
  return v;
}

Value Value::String(std::string_view bytes, bool foreign) {
  return String(Text(std::string(bytes), foreign));
}

Value Value::OfList(std::vector<Value> items) {
  List list{std::move(items)};
  for (const Value& item : list.items) list.height = std::max(list.height, 1 + item.height());
  Value v;
  v.data_ = Share(std::move(list));
  return v;
}

Value Value::OfDict(Dict dict) {
  Value v;
  v.data_ = Share(std::move(dict));
  return v;
}

Value Value::OfNamespace(std::shared_ptr<Namespace> members) {
  Value v;
  v.data_ = std::move(members);
  return v;
}

Value Value::OfFunction(Function function, int height) {
  Value v;
  v.data_ = Share(Callable{std::move(function), height});
  return v;
}

const Function& Value::function() const {
  return std::get<std::shared_ptr<const Callable>>(data_)->function;
}

const std::vector<Value>& Value::list() const {
  return std::get<std::shared_ptr<const List>>(data_)->items;
}

bool Value::Truthy() const {
  switch (kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return boolean();
    case Kind::kInt:
      return integer() != 0;
    case Kind::kFloat:
      return real() != 0;
    case Kind::kString:
    case Kind::kList:
    case Kind::kDict:
      return size() != 0;
    case Kind::kNamespace:
    case Kind::kFunction:
      return true;
  }
  return false;
}

int Value::height() const {
  if (is(Kind::kList)) return std::get<std::shared_ptr<const List>>(data_)->height;
  if (is(Kind::kFunction)) return std::get<std::shared_ptr<const Callable>>(data_)->height;
  return is(Kind::kDict) ? dict().height() : 0;
}

int64_t Value::size() const {
  switch (kind()) {
    case Kind::kString:
      return static_cast<int64_t>(text().size());
    case Kind::kList:
      return static_cast<int64_t>(list().size());
    case Kind::kDict:
      return static_cast<int64_t>(dict().entries().size());
    default:
      return 0;
  }
}

std::string_view KindName(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::kUndefined:
      return "an undefined value";
    case Value::Kind::kNone:
      return "none";
    case Value::Kind::kBool:
      return "a boolean";
    case Value::Kind::kInt:
      return "an integer";
    case Value::Kind::kFloat:
      return "a float";
    case Value::Kind::kString:
      return "a string";
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kDict:
      return "a dict";
    case Value::Kind::kNamespace:
      return "a namespace";
    case Value::Kind::kFunction:
      return "a function";
  }
  return "something";
}

const Dict::Entry* Dict::FindEntry(std::string_view key) const {
  if (!index_.empty()) {
    const auto found = index_.find(absl::string_view(key.data(), key.size()));
    return found == index_.end() ? nullptr : &entries_[found->second];
  }
  for (const Entry& entry : entries_) {
    if (entry.key.bytes() == key) return &entry;
  }
  return nullptr;
}

const Value* Dict::Find(std::string_view key) const {
  const Entry* entry = FindEntry(key);
  return entry == nullptr ? nullptr : &entry->value;
}

void Dict::Set(Text key, Value value) {
  height_ = std::max(height_, 1 + value.height());
  if (const Entry* entry = FindEntry(key.bytes()); entry != nullptr) {
    entries_[static_cast<size_t>(entry - entries_.data())].value = std::move(value);
    return;
  }
  entries_.push_back({std::move(key), std::move(value)});
  if (!index_.empty()) {
    index_.emplace(entries_.back().key.bytes(), entries_.size() - 1);
  } else if (entries_.size() > kSmallDict) {
    for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].key.bytes(), i);
  }
}

int64_t Arguments::size() const {
  int64_t size = static_cast<int64_t>(positional.size() + named.size());
  for (const Value& value : positional) size += value.size();
  for (const auto& [name, value] : named) size += static_cast<int64_t>(name.size()) + value.size();
  return size;
}

const Value* Arguments::Find(size_t place, std::string_view name) const {
  return place < positional.size() ? &positional[place] : FindNamed(name);
}

const Value* Arguments::FindNamed(std::string_view name) const {
  for (const auto& [key, value] : named) {
    if (key.bytes() == name) return &value;
  }
  return nullptr;
}

}  // namespace trine::jinja
