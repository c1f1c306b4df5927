#include "runtime/gguf/builder.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/quoted.h"

namespace trine::gguf {
namespace {

// Appends a number as type `type`. The reader has widened it to `T`.
template <class T>
bool AppendAs(ValueType type, T number, std::string* out) {
  if (type == ValueType::kBool && std::is_integral_v<T>) {
    AppendNumber(static_cast<uint8_t>(number != 0), out);
    return true;
  }
  bool same_kind = false;
  WithNumberType(type, [&]<class As>(As) {
    same_kind = std::is_floating_point_v<As> == std::is_floating_point_v<T>;
    if (same_kind) AppendNumber(static_cast<As>(number), out);
  });
  return same_kind;
}

// Appends a value without its type. Returns false if the value does not match its type.
bool AppendValue(const Value& value, std::string* out);

bool AppendArray(const Array& array, std::string* out) {
  const auto type = static_cast<ValueType>(array.element_type);
  AppendType(type, out);
  AppendNumber<uint64_t>(array.size, out);
  for (const int64_t number : array.integers) {
    if (!AppendAs(type, number, out)) return false;
  }
  for (const double number : array.floats) {
    if (!AppendAs(type, number, out)) return false;
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
  if (const auto* number = std::get_if<double>(&value.value)) return AppendAs(type, *number, out);
  if (const auto* text = std::get_if<std::string_view>(&value.value)) {
    AppendString(*text, out);
    return type == ValueType::kString;
  }
  const auto* array = std::get_if<Array>(&value.value);
  return array != nullptr && type == ValueType::kArray && AppendArray(*array, out);
}

}  // namespace

std::string Builder::ArrayHead(ValueType element_type, size_t size) {
  std::string value;
  AppendType(ValueType::kArray, &value);
  AppendType(element_type, &value);
  AppendNumber<uint64_t>(size, &value);
  return value;
}

void Builder::SetString(std::string_view key, std::string_view text) {
  std::string value;
  AppendType(ValueType::kString, &value);
  AppendString(text, &value);
  Put(key, std::move(value));
}

void Builder::SetStrings(std::string_view key, absl::Span<const std::string> texts) {
  std::string value = ArrayHead(ValueType::kString, texts.size());
  for (const std::string& text : texts) AppendString(text, &value);
  Put(key, std::move(value));
}

void Builder::SetValue(std::string_view key, const Value& value) {
  std::string encoded;
  AppendNumber(value.type, &encoded);
  if (!AppendValue(value, &encoded)) {
    return Fail(absl::StrCat("the value of the metadata key ", Quoted(key), " does not hold a ",
                             ValueTypeName(value.type), ", as its type says"));
  }
  Put(key, std::move(encoded));
}

void Builder::CopyMetadata(const Metadata& metadata) {
  for (const Metadata::Entry& entry : metadata.entries()) {
    if (!IsSplitKey(entry.key)) SetValue(entry.key, entry.value);
  }
}

void Builder::Remove(std::string_view key) {
  const auto found = pair_index_.find(std::string(key));
  if (found == pair_index_.end()) return;
  const size_t place = found->second;
  pairs_.erase(pairs_.begin() + static_cast<ptrdiff_t>(place));
  pair_index_.erase(found);
  for (auto& [name, index] : pair_index_) {
    if (index > place) --index;
  }
}

void Builder::Put(std::string_view key, std::string value) {
  if (key.empty() || key.size() > kMaxKeyBytes) {
    return Fail(absl::StrCat("the metadata key ", Quoted(key), " has ", key.size(),
                             " bytes; expected 1 to ", kMaxKeyBytes));
  }
  const auto [place, is_new] = pair_index_.try_emplace(std::string(key), pairs_.size());
  if (is_new) {
    pairs_.push_back({std::string(key), std::move(value)});
  } else {
    pairs_[place->second].value = std::move(value);
  }
}

void Builder::AddTensor(std::string_view name, quant::Type type, absl::Span<const int64_t> dims) {
  const auto fail = [&](const std::string& message) {
    Fail(absl::StrCat("the tensor ", Quoted(name), " ", message));
  };
  if (name.empty() || name.size() > kMaxTensorNameBytes) {
    return fail(
        absl::StrCat("has a name of ", name.size(), " bytes; expected 1 to ", kMaxTensorNameBytes));
  }
  if (!NumberFromTensorType(type)) {
    return fail(absl::StrCat("has the type ", TensorTypeName(type), ", which files do not have"));
  }
  if (dims.empty() || dims.size() > kMaxRank) {
    return fail(absl::StrCat("has ", dims.size(), " dimensions; expected 1 to ", kMaxRank));
  }
  const int64_t block_values = quant::Traits(type).block_values;
  if (dims[0] % block_values != 0) {
    return fail(absl::StrCat("has rows of ", dims[0], " values; ", TensorTypeName(type),
                             " needs a multiple of ", block_values));
  }
  int64_t values = 1;
  for (const int64_t dim : dims) {
    if (dim <= 0) return fail(absl::StrCat("has a dimension of length ", dim));
    if (__builtin_mul_overflow(values, dim, &values)) return fail("has more than 2^63 values");
  }
  uint64_t bytes = 0;  // rows are whole blocks, so all values count as one row
  if (!quant::RowBytes(type, values, &bytes)) {
    return fail("has a size that does not fit in 64 bits");
  }
  if (!tensor_names_.insert(std::string(name)).second) return fail("was added twice");
  tensors_.push_back({std::string(name), type, {dims.begin(), dims.end()}, bytes});
}

absl::StatusOr<uint32_t> Builder::Alignment() const {
  const auto found = pair_index_.find(kAlignmentKey);
  if (found == pair_index_.end()) return kDefaultAlignment;
  const std::string& value = pairs_[found->second].value;
  uint32_t numbers[2] = {};  // type and alignment
  if (value.size() == sizeof(numbers)) std::memcpy(numbers, value.data(), sizeof(numbers));
  const uint32_t alignment = numbers[1];
  if (numbers[0] != static_cast<uint32_t>(ValueType::kUint32) || alignment < kMinAlignment ||
      alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0) {
    return Invalid("the metadata key '", kAlignmentKey, "' must be a uint32 and a power of two, ",
                   kMinAlignment, " to ", kMaxAlignment);
  }
  return alignment;
}

void Builder::Fail(const std::string& message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(message);
}

}  // namespace trine::gguf
