#include "runtime/gguf/metadata_reader.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/gguf/quoted.h"

namespace trine::gguf {
namespace {

// A key of one byte with its length, a type, a value of one byte.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;

}  // namespace

absl::Status MetadataReader::Error(const std::string& message) const {
  return absl::InvalidArgumentError(absl::StrCat("the metadata key ", Quoted(key_), " ", message));
}

absl::Status MetadataReader::Ends() const {
  return cursor_->Ends(absl::StrCat("the value of the metadata key ", Quoted(key_)));
}

absl::StatusOr<Metadata> MetadataReader::Read(uint64_t count) {
  if (count > kMaxKeys) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file claims ", count, " metadata keys; at most ", kMaxKeys, " are read"));
  }
  if (count > cursor_->remaining() / kMinEntryBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file claims ", count, " metadata keys, more than fit in the ",
                     cursor_->remaining(), " bytes after its header"));
  }
  Metadata metadata;
  metadata.entries_.reserve(count);
  metadata.index_.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    Metadata::Entry entry;
    const absl::Status status = ReadEntry(i, &entry);
    if (!status.ok()) return status;
    const absl::string_view key(entry.key.data(), entry.key.size());
    if (!metadata.index_.emplace(key, static_cast<uint32_t>(i)).second) {
      return Error("occurs twice");
    }
    metadata.entries_.push_back(std::move(entry));
  }
  return metadata;
}

absl::Status MetadataReader::ReadEntry(uint64_t index, Metadata::Entry* entry) {
  if (!cursor_->ReadString(&entry->key)) {
    return cursor_->Ends(absl::StrCat("the name of metadata key ", index));
  }
  if (entry->key.empty() || entry->key.size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the name of metadata key ", index, " has ",
                                                   entry->key.size(), " bytes; expected 1 to ",
                                                   kMaxKeyBytes));
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

template <class T>
absl::Status MetadataReader::ReadInteger(Value* value) {
  T number = 0;
  if (!cursor_->Read(&number)) return Ends();
  if (std::is_same_v<T, uint64_t> &&
      static_cast<uint64_t>(number) > std::numeric_limits<int64_t>::max()) {
    value->value = static_cast<uint64_t>(number);
  } else {
    value->value = static_cast<int64_t>(number);
  }
  return absl::OkStatus();
}

absl::Status MetadataReader::ReadBool(bool* flag) {
  uint8_t byte = 0;
  if (!cursor_->Read(&byte)) return Ends();
  if (byte > 1) return Error(absl::StrCat("has a bool of ", byte, "; expected 0 or 1"));
  *flag = byte == 1;
  return absl::OkStatus();
}

absl::Status MetadataReader::ReadScalar(ValueType type, Value* value) {
  switch (type) {
    case ValueType::kUint8:
      return ReadInteger<uint8_t>(value);
    case ValueType::kInt8:
      return ReadInteger<int8_t>(value);
    case ValueType::kUint16:
      return ReadInteger<uint16_t>(value);
    case ValueType::kInt16:
      return ReadInteger<int16_t>(value);
    case ValueType::kUint32:
      return ReadInteger<uint32_t>(value);
    case ValueType::kInt32:
      return ReadInteger<int32_t>(value);
    case ValueType::kUint64:
      return ReadInteger<uint64_t>(value);
    case ValueType::kInt64:
      return ReadInteger<int64_t>(value);
    case ValueType::kFloat32: {
      float number = 0;
      if (!cursor_->Read(&number)) return Ends();
      value->value = static_cast<double>(number);
      return absl::OkStatus();
    }
    case ValueType::kFloat64: {
      double number = 0;
      if (!cursor_->Read(&number)) return Ends();
      value->value = number;
      return absl::OkStatus();
    }
    case ValueType::kBool:
      return ReadBool(&value->value.emplace<bool>());
    case ValueType::kString:
      if (!cursor_->ReadString(&value->value.emplace<std::string_view>())) return Ends();
      return absl::OkStatus();
    case ValueType::kArray:
      break;
  }
  return Error("has a type that is no scalar");
}

absl::Status MetadataReader::ReadArray(int depth, Array* array) {
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
    return Error(absl::StrCat("brings the array elements of the file to ", elements_, "; at most ",
                              kMaxArrayElements, " are read"));
  }
  return ReadElements(type, depth, array);
}

template <class T, class Stored>
void MetadataReader::AppendAll(uint64_t count, std::vector<Stored>* out) {
  out->resize(count);
  for (Stored& stored : *out) {
    T number{};
    cursor_->Read(&number);  // ReadArray has seen that all of them are there
    stored = static_cast<Stored>(number);
  }
}

absl::Status MetadataReader::ReadElements(ValueType type, int depth, Array* array) {
  const uint64_t size = array->size;
  switch (type) {
    case ValueType::kUint8:
      AppendAll<uint8_t>(size, &array->integers);
      break;
    case ValueType::kInt8:
      AppendAll<int8_t>(size, &array->integers);
      break;
    case ValueType::kUint16:
      AppendAll<uint16_t>(size, &array->integers);
      break;
    case ValueType::kInt16:
      AppendAll<int16_t>(size, &array->integers);
      break;
    case ValueType::kUint32:
      AppendAll<uint32_t>(size, &array->integers);
      break;
    case ValueType::kInt32:
      AppendAll<int32_t>(size, &array->integers);
      break;
    case ValueType::kUint64:
      AppendAll<uint64_t>(size, &array->integers);
      break;
    case ValueType::kInt64:
      AppendAll<int64_t>(size, &array->integers);
      break;
    case ValueType::kFloat32:
      AppendAll<float>(size, &array->floats);
      break;
    case ValueType::kFloat64:
      AppendAll<double>(size, &array->floats);
      break;
    case ValueType::kBool:
      array->integers.resize(size);
      for (int64_t& stored : array->integers) {
        bool flag = false;
        const absl::Status status = ReadBool(&flag);
        if (!status.ok()) return status;
        stored = flag ? 1 : 0;
      }
      break;
    case ValueType::kString:
      array->strings.resize(size);
      for (std::string_view& text : array->strings) {
        if (!cursor_->ReadString(&text)) return Ends();
      }
      break;
    case ValueType::kArray:
      nested_arrays_ += size;
      if (nested_arrays_ > kMaxNestedArrays) {
        return Error(absl::StrCat("brings the nested arrays of the file to ", nested_arrays_,
                                  "; at most ", kMaxNestedArrays, " are read"));
      }
      array->nested.resize(size);
      for (Value& nested : array->nested) {
        nested.type = static_cast<uint32_t>(ValueType::kArray);
        const absl::Status status = ReadArray(depth + 1, &nested.value.emplace<Array>());
        if (!status.ok()) return status;
      }
      break;
  }
  return absl::OkStatus();
}

}  // namespace trine::gguf
