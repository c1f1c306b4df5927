// Reads any bytes as a GGUF file. They are refused with a message, or read with every part within
// the bytes, and are the same after being written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/gguf/builder.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/gguf/part_reader.h"
#include "runtime/gguf/quoted.h"
#include "runtime/gguf/test_bytes.h"

namespace trine::gguf {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// Reads every byte of a view, for the sanitizer to check.
class Toucher {
 public:
  void Touch(const std::byte* data, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; ++i) sum_ = sum_ + static_cast<uint8_t>(data[i]);
  }
  void Touch(std::string_view text) {
    Touch(reinterpret_cast<const std::byte*>(text.data()), text.size());
  }
  void Touch(const Value& value) {
    if (const auto* text = std::get_if<std::string_view>(&value.value)) Touch(*text);
    if (const auto* array = std::get_if<Array>(&value.value)) {
      Require(array->size == array->integers.size() + array->floats.size() + array->strings.size() +
                                 array->nested.size());
      for (const std::string_view text : array->strings) Touch(text);
      for (const Value& nested : array->nested) Touch(nested);
    }
  }

 private:
  volatile uint64_t sum_ = 0;
};

// Reads the caller's block in place: the sanitizer knows its end to the byte.
void ReadInPlace(const std::byte* data, size_t size) {
  const absl::StatusOr<PartContents> part = ReadPart(data, size);
  if (!part.ok()) {
    Require(!part.status().message().empty());
    return;
  }
  Toucher toucher;
  for (const Metadata::Entry& entry : part->metadata.entries()) {
    toucher.Touch(entry.key);
    toucher.Touch(entry.value);
    Require(part->metadata.Find(entry.key) == &entry.value);
    (void)part->metadata.IntegerOr(entry.key, 0, 100, 1);
    (void)part->metadata.FloatOr(entry.key, 1);
    (void)part->metadata.StringOr(entry.key, "");
    (void)part->metadata.BoolOr(entry.key, false);
    (void)Quoted(entry.key);
  }
  for (const TensorInfo& tensor : part->tensors) {
    Require(tensor.offset <= size && tensor.bytes <= size - tensor.offset);
    toucher.Touch(tensor.name);
    toucher.Touch(tensor.data, tensor.bytes);
  }
}

// Compares bytes of the file, as a NaN is not equal to itself.
void WriteAndReadAgain(const File& file) {
  Builder builder;
  for (const Metadata::Entry& entry : file.metadata().entries()) {
    // Files may give their alignment any integer type; the writer requires uint32.
    if (entry.key != kAlignmentKey) builder.SetValue(entry.key, entry.value);
  }
  std::vector<absl::Span<const std::byte>> data;
  for (const TensorInfo& tensor : file.tensors()) {
    builder.AddTensor(tensor.name, tensor.type, absl::MakeConstSpan(tensor.dims, tensor.rank));
    data.emplace_back(tensor.data, tensor.bytes);
  }
  const absl::StatusOr<std::vector<std::byte>> bytes = ToBytes(builder, data, file.version());
  Require(bytes.ok());
  const auto again = File::FromMemory(*bytes);
  Require(again.ok());
  Builder copy;
  for (const Metadata::Entry& entry : (*again)->metadata().entries()) {
    copy.SetValue(entry.key, entry.value);
  }
  Require(copy.pairs().size() == builder.pairs().size());
  for (size_t i = 0; i < copy.pairs().size(); ++i) {
    Require(copy.pairs()[i].key == builder.pairs()[i].key);
    Require(copy.pairs()[i].value == builder.pairs()[i].value);
  }
  Require((*again)->tensors().size() == data.size());
  for (size_t i = 0; i < data.size(); ++i) {
    const TensorInfo& tensor = (*again)->tensors()[i];
    Require(absl::MakeConstSpan(tensor.data, tensor.bytes) == data[i]);
  }
}

}  // namespace
}  // namespace trine::gguf

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  trine::gguf::ReadInPlace(bytes, size);
  const auto file = trine::gguf::File::FromMemory(absl::MakeConstSpan(bytes, size));
  if (file.ok()) trine::gguf::WriteAndReadAgain(**file);
  return 0;
}
