#include "runtime/gguf/encode.h"

namespace trine::gguf {
namespace {

// A number of type `type` that the reader has widened to `T`.
template <class T>
bool AppendAs(ValueType type, T number, std::string* out) {
  switch (type) {
    case ValueType::kUint8:
      AppendNumber(static_cast<uint8_t>(number), out);
      return true;
    case ValueType::kInt8:
      AppendNumber(static_cast<int8_t>(number), out);
      return true;
    case ValueType::kUint16:
      AppendNumber(static_cast<uint16_t>(number), out);
      return true;
    case ValueType::kInt16:
      AppendNumber(static_cast<int16_t>(number), out);
      return true;
    case ValueType::kUint32:
      AppendNumber(static_cast<uint32_t>(number), out);
      return true;
    case ValueType::kInt32:
      AppendNumber(static_cast<int32_t>(number), out);
      return true;
    case ValueType::kUint64:
      AppendNumber(static_cast<uint64_t>(number), out);
      return true;
    case ValueType::kInt64:
      AppendNumber(static_cast<int64_t>(number), out);
      return true;
    case ValueType::kBool:
      AppendNumber(static_cast<uint8_t>(number != 0), out);
      return true;
    default:
      return false;
  }
}

bool AppendFloat(ValueType type, double number, std::string* out) {
  if (type == ValueType::kFloat32) {
    AppendNumber(static_cast<float>(number), out);
  } else {
    AppendNumber(number, out);
  }
  return type == ValueType::kFloat32 || type == ValueType::kFloat64;
}

bool AppendArray(const Array& array, std::string* out) {
  const auto type = static_cast<ValueType>(array.element_type);
  AppendType(type, out);
  AppendNumber<uint64_t>(array.size, out);
  for (const int64_t number : array.integers) {
    if (!AppendAs(type, number, out)) return false;
  }
  for (const double number : array.floats) {
    if (!AppendFloat(type, number, out)) return false;
  }
  for (const std::string_view text : array.strings) {
    if (type != ValueType::kString) return false;
    AppendString(text, out);
  }
  for (const Value& nested : array.nested) {
    if (type != ValueType::kArray || !AppendValue(nested, out)) return false;
  }
  return array.size ==
         array.integers.size() + array.floats.size() + array.strings.size() + array.nested.size();
}

}  // namespace

bool AppendValue(const Value& value, std::string* out) {
  const auto type = static_cast<ValueType>(value.type);
  if (const auto* flag = std::get_if<bool>(&value.value)) {
    return type == ValueType::kBool && AppendAs(type, *flag ? 1 : 0, out);
  }
  if (const auto* number = std::get_if<int64_t>(&value.value)) {
    return type != ValueType::kBool && AppendAs(type, *number, out);
  }
  if (const auto* number = std::get_if<uint64_t>(&value.value)) {
    return type == ValueType::kUint64 && AppendAs(type, *number, out);
  }
  if (const auto* number = std::get_if<double>(&value.value)) {
    return AppendFloat(type, *number, out);
  }
  if (const auto* text = std::get_if<std::string_view>(&value.value)) {
    AppendString(*text, out);
    return type == ValueType::kString;
  }
  const auto* array = std::get_if<Array>(&value.value);
  return array != nullptr && type == ValueType::kArray && AppendArray(*array, out);
}

}  // namespace trine::gguf
