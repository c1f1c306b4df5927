// Collects the contents of a GGUF file: metadata, and the tensors' names, types and shapes. Does
// not take the tensors' data: Writer writes it to the file. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/quant/block_types.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/metadata.h"

namespace trine::gguf {

// Appends a number as the file has it: its bytes in memory.
template <class T>
void AppendNumber(T number, std::string* out) {
  static_assert(std::is_arithmetic_v<T>);
  out->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

inline void AppendString(std::string_view text, std::string* out) {
  AppendNumber<uint64_t>(text.size(), out);
  out->append(text);
}

inline void AppendType(ValueType type, std::string* out) {
  AppendNumber(static_cast<uint32_t>(type), out);
}

class Builder {
 public:
  struct Tensor {
    std::string name;
    quant::Type type = quant::Type::kF32;
    std::vector<int64_t> dims;  // innermost first
    uint64_t bytes = 0;
  };
  struct Pair {
    std::string key;
    std::string value;  // the value's bytes as in the file, type first
  };

  // Set the value of a key. A key that is set again keeps its place among the keys. The key
  // general.alignment sets the file's alignment.
  void SetUint8(std::string_view key, uint8_t value) { SetScalar(key, value); }
  void SetInt8(std::string_view key, int8_t value) { SetScalar(key, value); }
  void SetUint16(std::string_view key, uint16_t value) { SetScalar(key, value); }
  void SetInt16(std::string_view key, int16_t value) { SetScalar(key, value); }
  void SetUint32(std::string_view key, uint32_t value) { SetScalar(key, value); }
  void SetInt32(std::string_view key, int32_t value) { SetScalar(key, value); }
  void SetUint64(std::string_view key, uint64_t value) { SetScalar(key, value); }
  void SetInt64(std::string_view key, int64_t value) { SetScalar(key, value); }
  void SetFloat32(std::string_view key, float value) { SetScalar(key, value); }
  void SetFloat64(std::string_view key, double value) { SetScalar(key, value); }
  void SetBool(std::string_view key, bool value) { SetScalar(key, value); }
  void SetString(std::string_view key, std::string_view value);

  void SetStrings(std::string_view key, absl::Span<const std::string> values);
  void SetInt32s(std::string_view key, absl::Span<const int32_t> v) { SetNumbers(key, v); }
  void SetUint32s(std::string_view key, absl::Span<const uint32_t> v) { SetNumbers(key, v); }
  void SetFloat32s(std::string_view key, absl::Span<const float> v) { SetNumbers(key, v); }
  void SetBools(std::string_view key, absl::Span<const bool> v) { SetNumbers(key, v); }

  // Copies a value of another file, with its type.
  void SetValue(std::string_view key, const Value& value);
  // Copies all values of another file, except those about its split.
  void CopyMetadata(const Metadata& metadata);
  void Remove(std::string_view key);

  // Adds a tensor. `dims` has the innermost dimension first. Data is written in the order of these
  // calls.
  void AddTensor(std::string_view name, quant::Type type, absl::Span<const int64_t> dims);

  const std::vector<Pair>& pairs() const { return pairs_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }

  // Returns the first error of all calls that set a value or added a tensor.
  const absl::Status& status() const { return status_; }
  absl::StatusOr<uint32_t> Alignment() const;

 private:
  template <class T>
  void SetScalar(std::string_view key, T number) {
    std::string value;
    AppendType(ValueTypeOf<T>(), &value);
    AppendNumber(number, &value);
    Put(key, std::move(value));
  }
  template <class T>
  void SetNumbers(std::string_view key, absl::Span<const T> numbers) {
    std::string value = ArrayHead(ValueTypeOf<T>(), numbers.size());
    for (const T number : numbers) AppendNumber(number, &value);
    Put(key, std::move(value));
  }
  static std::string ArrayHead(ValueType element_type, size_t size);
  void Put(std::string_view key, std::string value);
  void Fail(const std::string& message);

  std::vector<Pair> pairs_;
  absl::flat_hash_map<std::string, size_t> pair_index_;
  std::vector<Tensor> tensors_;
  absl::flat_hash_set<std::string> tensor_names_;
  absl::Status status_;
};

}  // namespace trine::gguf
