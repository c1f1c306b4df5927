#include "runtime/template/values/value.h"

#include <algorithm>

namespace trine::jinja {
namespace {

// Dicts up to this size are searched linearly.
constexpr size_t kSmallDict = 12;

template <class T>
std::shared_ptr<const T> Share(T value) {
  return std::make_shared<const T>(std::move(value));
}

}  // namespace

Value Value::String(Text text) { return Of(Share(std::move(text))); }

Value Value::String(std::string_view bytes, bool foreign) {
  return String(Text(std::string(bytes), foreign));
}

Value Value::OfList(std::vector<Value> items) {
  List list{std::move(items)};
  for (const Value& item : list.items) list.height = std::max(list.height, 1 + item.height());
  return Of(Share(std::move(list)));
}

Value Value::OfDict(Dict dict) { return Of(Share(std::move(dict))); }

Value Value::OfNamespace(std::shared_ptr<Namespace> members) { return Of(std::move(members)); }

Value Value::OfFunction(Function function, int height) {
  return Of(Share(Callable{std::move(function), height}));
}

const Function& Value::function() const {
  return std::get<std::shared_ptr<const Callable>>(data_)->function;
}

const std::vector<Value>& Value::list() const {
  return std::get<std::shared_ptr<const List>>(data_)->items;
}

bool Value::Truthy() const {
  if (is(Kind::kBool)) return boolean();
  if (is(Kind::kInt)) return integer() != 0;
  if (is(Kind::kFloat)) return real() != 0;
  if (is(Kind::kNamespace) || is(Kind::kFunction)) return true;
  return size() != 0;
}

int Value::height() const {
  if (is(Kind::kList)) return std::get<std::shared_ptr<const List>>(data_)->height;
  if (is(Kind::kFunction)) return std::get<std::shared_ptr<const Callable>>(data_)->height;
  return is(Kind::kDict) ? dict().height() : 0;
}

int64_t Value::size() const {
  if (is(Kind::kString)) return static_cast<int64_t>(text().size());
  if (is(Kind::kList)) return static_cast<int64_t>(list().size());
  return is(Kind::kDict) ? static_cast<int64_t>(dict().entries().size()) : 0;
}

std::string_view KindName(Value::Kind kind) {
  constexpr std::string_view kNames[] = {
      "an undefined value", "none",   "a boolean", "an integer",  "a float",
      "a string",           "a list", "a dict",    "a namespace", "a function"};
  return kNames[static_cast<size_t>(kind)];
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
