#include "runtime/gguf/metadata.h"

#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/cursor.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/quoted.h"

namespace trine::gguf {
namespace {

// Returns a text such as "a string" or "an array of int32".
std::string TypeText(const Value& value) {
  if (const Array* array = std::get_if<Array>(&value.value)) {
    return absl::StrCat("an array of ", ValueTypeName(array->element_type));
  }
  const std::string name = ValueTypeName(value.type);
  return absl::StrCat(name[0] == 'i' ? "an " : "a ", name);
}

absl::Status WrongType(std::string_view key, const Value& value, const char* expected) {
  return Invalid("the metadata key ", Quoted(key), " is ", TypeText(value), "; expected ",
                 expected);
}

// Returns the value, the fallback if the key is missing, or the error.
template <class T>
absl::StatusOr<T> Or(absl::StatusOr<T> value, T fallback) {
  if (absl::IsNotFound(value.status())) return fallback;
  return value;
}

// A key of one byte and its length, a type, and a value of one byte.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;

class MetadataReader {
 public:
  explicit MetadataReader(Cursor* cursor) : cursor_(cursor) {}

  absl::Status ReadEntry(uint64_t index, Metadata::Entry* entry) {
    if (!cursor_->ReadString(&entry->key)) {
      return cursor_->Ends(absl::StrCat("the name of metadata key ", index));
    }
    if (entry->key.empty() || entry->key.size() > kMaxKeyBytes) {
      return Invalid("the name of metadata key ", index, " has ", entry->key.size(),
                     " bytes; expected 1 to ", kMaxKeyBytes);
    }
    key_ = entry->key;
    uint32_t type = 0;
    if (!cursor_->Read(&type)) return Ends();
    if (type >= kValueTypes) {
      return Error(absl::StrCat("has value type ", type, "; expected 0 to ", kValueTypes - 1));
    }
    entry->value.type = type;
    if (static_cast<ValueType>(type) == ValueType::kArray) {
      return ReadArray(1, &entry->value.value.emplace<Array>());
    }
    return ReadScalar(static_cast<ValueType>(type), &entry->value);
  }

  // Says that the error is about the current key.
  absl::Status Error(const std::string& message) const {
    return Invalid("the metadata key ", Quoted(key_), " ", message);
  }

 private:
  absl::Status Ends() const {
    return cursor_->Ends(absl::StrCat("the value of the metadata key ", Quoted(key_)));
  }

  absl::Status ReadScalar(ValueType type, Value* value) {
    if (type == ValueType::kBool) return ReadBool(&value->value.emplace<bool>());
    bool read = false;
    if (type == ValueType::kString) {
      read = cursor_->ReadString(&value->value.emplace<std::string_view>());
    }
    WithNumberType(type, [&]<class T>(T number) {
      read = cursor_->Read(&number);
      if constexpr (std::is_floating_point_v<T>) {
        value->value = static_cast<double>(number);
      } else if (std::in_range<int64_t>(number)) {
        value->value = static_cast<int64_t>(number);
      } else {
        value->value = static_cast<uint64_t>(number);
      }
    });
    return read ? absl::OkStatus() : Ends();
  }

  absl::Status ReadBool(bool* flag) {
    uint8_t byte = 0;
    if (!cursor_->Read(&byte)) return Ends();
    if (byte > 1) return Error(absl::StrCat("has a bool of ", byte, "; expected 0 or 1"));
    *flag = byte == 1;
    return absl::OkStatus();
  }

  absl::Status ReadArray(int depth, Array* array) {
    if (depth > kMaxArrayDepth) {
      return Error(absl::StrCat("has arrays nested more than ", kMaxArrayDepth, " deep"));
    }
    if (!cursor_->Read(&array->element_type) || !cursor_->Read(&array->size)) return Ends();
    if (array->element_type >= kValueTypes) {
      return Error(absl::StrCat("is an array of type ", array->element_type, "; expected 0 to ",
                                kValueTypes - 1));
    }
    const auto type = static_cast<ValueType>(array->element_type);
    if (array->size > cursor_->remaining() / ValueTypeBytes(type)) {
      return Error(absl::StrCat("claims ", array->size, " elements of type ",
                                ValueTypeName(array->element_type), ", more than fit in the ",
                                cursor_->remaining(), " bytes left"));
    }
    elements_ += array->size;
    if (elements_ > kMaxArrayElements) {
      return Error(absl::StrCat("brings the array elements of the file to ", elements_,
                                "; at most ", kMaxArrayElements, " are read"));
    }
    return ReadElements(type, depth, array);
  }

  absl::Status ReadElements(ValueType type, int depth, Array* array) {
    const uint64_t size = array->size;
    if (type == ValueType::kBool) {
      array->integers.resize(size);
      for (int64_t& stored : array->integers) {
        bool flag = false;
        if (const absl::Status s = ReadBool(&flag); !s.ok()) return s;
        stored = flag ? 1 : 0;
      }
    } else if (type == ValueType::kString) {
      array->strings.resize(size);
      for (std::string_view& text : array->strings) {
        if (!cursor_->ReadString(&text)) return Ends();
      }
    } else if (type == ValueType::kArray) {
      nested_arrays_ += size;
      if (nested_arrays_ > kMaxNestedArrays) {
        return Error(absl::StrCat("brings the nested arrays of the file to ", nested_arrays_,
                                  "; at most ", kMaxNestedArrays, " are read"));
      }
      array->nested.resize(size);
      for (Value& nested : array->nested) {
        nested.type = static_cast<uint32_t>(ValueType::kArray);
        const absl::Status s = ReadArray(depth + 1, &nested.value.emplace<Array>());
        if (!s.ok()) return s;
      }
    } else {
      WithNumberType(type, [&]<class T>(T) {
        if constexpr (std::is_floating_point_v<T>) {
          ReadNumbers<T>(size, &array->floats);
        } else {
          ReadNumbers<T>(size, &array->integers);
        }
      });
    }
    return absl::OkStatus();
  }

  template <class T, class Stored>
  void ReadNumbers(uint64_t count, std::vector<Stored>* out) {
    out->resize(count);
    for (Stored& stored : *out) {
      T number{};
      cursor_->Read(&number);  // can't fail: ReadArray has checked the size
      stored = static_cast<Stored>(number);
    }
  }

  Cursor* cursor_;
  std::string_view key_;  // the current key, for messages
  uint64_t elements_ = 0;
  uint64_t nested_arrays_ = 0;
};

}  // namespace

const Value* Metadata::Find(std::string_view key) const {
  const auto found = index_.find(absl::string_view(key.data(), key.size()));
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

absl::StatusOr<const Value*> Metadata::Get(std::string_view key) const {
  const Value* value = Find(key);
  if (value == nullptr) {
    return absl::NotFoundError(absl::StrCat("the metadata key ", Quoted(key), " is missing"));
  }
  return value;
}

absl::StatusOr<std::string_view> Metadata::String(std::string_view key) const {
  const absl::StatusOr<const Value*> value = Get(key);
  if (!value.ok()) return value.status();
  const auto* text = std::get_if<std::string_view>(&(*value)->value);
  if (text == nullptr) return WrongType(key, **value, "a string");
  return *text;
}

absl::StatusOr<int64_t> Metadata::Integer(std::string_view key, int64_t min, int64_t max) const {
  const absl::StatusOr<const Value*> value = Get(key);
  if (!value.ok()) return value.status();
  const auto out_of_range = [&](auto number) {
    return Invalid("the metadata key ", Quoted(key), " is ", number, "; expected ", min, " to ",
                   max);
  };
  if (const auto* number = std::get_if<int64_t>(&(*value)->value)) {
    if (*number < min || *number > max) return out_of_range(*number);
    return *number;
  }
  if (const auto* number = std::get_if<uint64_t>(&(*value)->value)) return out_of_range(*number);
  return WrongType(key, **value, "an integer");
}

absl::StatusOr<double> Metadata::Float(std::string_view key) const {
  const absl::StatusOr<const Value*> value = Get(key);
  if (!value.ok()) return value.status();
  const auto& variant = (*value)->value;
  if (const auto* number = std::get_if<double>(&variant)) return *number;
  if (const auto* number = std::get_if<int64_t>(&variant)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<uint64_t>(&variant)) return static_cast<double>(*number);
  return WrongType(key, **value, "a number");
}

absl::StatusOr<bool> Metadata::Bool(std::string_view key) const {
  const absl::StatusOr<const Value*> value = Get(key);
  if (!value.ok()) return value.status();
  const bool* flag = std::get_if<bool>(&(*value)->value);
  if (flag == nullptr) return WrongType(key, **value, "a bool");
  return *flag;
}

absl::StatusOr<const Array*> Metadata::ArrayOf(std::string_view key) const {
  const absl::StatusOr<const Value*> value = Get(key);
  if (!value.ok()) return value.status();
  const Array* array = std::get_if<Array>(&(*value)->value);
  if (array == nullptr) return WrongType(key, **value, "an array");
  return array;
}

absl::StatusOr<std::string_view> Metadata::StringOr(std::string_view key,
                                                    std::string_view fallback) const {
  return Or(String(key), fallback);
}

absl::StatusOr<int64_t> Metadata::IntegerOr(std::string_view key, int64_t min, int64_t max,
                                            int64_t fallback) const {
  return Or(Integer(key, min, max), fallback);
}

absl::StatusOr<double> Metadata::FloatOr(std::string_view key, double fallback) const {
  return Or(Float(key), fallback);
}

absl::StatusOr<bool> Metadata::BoolOr(std::string_view key, bool fallback) const {
  return Or(Bool(key), fallback);
}

absl::StatusOr<Metadata> ReadMetadata(uint64_t count, Cursor* cursor) {
  if (count > kMaxKeys) {
    return Invalid("the file claims ", count, " metadata keys; at most ", kMaxKeys, " are read");
  }
  if (count > cursor->remaining() / kMinEntryBytes) {
    return Invalid("the file claims ", count, " metadata keys, more than fit in the ",
                   cursor->remaining(), " bytes after its header");
  }
  Metadata metadata;
  metadata.entries_.reserve(count);
  metadata.index_.reserve(count);
  MetadataReader reader(cursor);
  for (uint64_t i = 0; i < count; ++i) {
    Metadata::Entry entry;
    if (const absl::Status s = reader.ReadEntry(i, &entry); !s.ok()) return s;
    const absl::string_view key(entry.key.data(), entry.key.size());
    if (!metadata.index_.emplace(key, static_cast<uint32_t>(i)).second) {
      return reader.Error("occurs twice");
    }
    metadata.entries_.push_back(std::move(entry));
  }
  return metadata;
}

}  // namespace trine::gguf
