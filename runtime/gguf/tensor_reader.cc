#include "runtime/gguf/tensor_reader.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/quoted.h"

namespace trine::gguf {
namespace {

// A name of one byte with its length, rank, one dimension, type, offset.
constexpr uint64_t kMinInfoBytes = 8 + 1 + 4 + 8 + 4 + 8;

absl::Status TensorError(const TensorInfo& tensor, const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat("the tensor ", Quoted(tensor.name), " ", message));
}

absl::Status ReadName(uint64_t index, Cursor* cursor, TensorInfo* tensor) {
  if (!cursor->ReadString(&tensor->name)) {
    return cursor->Ends(absl::StrCat("the name of tensor ", index));
  }
  if (tensor->name.empty() || tensor->name.size() > kMaxTensorNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the name of tensor ", index, " has ",
                                                   tensor->name.size(), " bytes; expected 1 to ",
                                                   kMaxTensorNameBytes));
  }
  return absl::OkStatus();
}

absl::Status ReadShape(Cursor* cursor, TensorInfo* tensor) {
  if (!cursor->Read(&tensor->rank)) {
    return cursor->Ends(absl::StrCat("the shape of the tensor ", Quoted(tensor->name)));
  }
  if (tensor->rank < 1 || tensor->rank > kMaxRank) {
    return TensorError(*tensor,
                       absl::StrCat("has ", tensor->rank, " dimensions; expected 1 to ", kMaxRank));
  }
  int64_t values = 1;
  for (uint32_t i = 0; i < tensor->rank; ++i) {
    uint64_t dim = 0;
    if (!cursor->Read(&dim)) {
      return cursor->Ends(absl::StrCat("the shape of the tensor ", Quoted(tensor->name)));
    }
    if (dim == 0) return TensorError(*tensor, absl::StrCat("has length 0 in dimension ", i));
    if (dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
        __builtin_mul_overflow(values, static_cast<int64_t>(dim), &values)) {
      return TensorError(
          *tensor,
          absl::StrCat("has more than 2^63 values: its length in dimension ", i, " is ", dim));
    }
    tensor->dims[i] = static_cast<int64_t>(dim);
  }
  return absl::OkStatus();
}

absl::Status ReadType(Cursor* cursor, TensorInfo* tensor) {
  uint32_t number = 0;
  if (!cursor->Read(&number)) {
    return cursor->Ends(absl::StrCat("the type of the tensor ", Quoted(tensor->name)));
  }
  const std::optional<quant::Type> type = TensorTypeFromNumber(number);
  if (!type) {
    const std::string name = TensorTypeName(number);
    return absl::UnimplementedError(
        absl::StrCat("the tensor ", Quoted(tensor->name), " has ",
                     name.empty() ? absl::StrCat("the unknown type number ", number)
                                  : absl::StrCat("the type ", name, ", which is not supported"),
                     "; supported are ", SupportedTensorTypes()));
  }
  tensor->type = *type;
  return absl::OkStatus();
}

// From type and shape.
absl::Status ComputeBytes(TensorInfo* tensor) {
  const quant::TypeTraits traits = quant::Traits(tensor->type);
  if (tensor->dims[0] % traits.block_values != 0) {
    return TensorError(*tensor, absl::StrCat("has rows of ", tensor->dims[0], " values; ",
                                             TensorTypeName(tensor->type), " needs a multiple of ",
                                             traits.block_values));
  }
  uint64_t row_bytes = 0;
  if (!quant::RowBytes(tensor->type, tensor->dims[0], &row_bytes) ||
      __builtin_mul_overflow(row_bytes, static_cast<uint64_t>(tensor->Rows()), &tensor->bytes)) {
    return TensorError(*tensor, "has a size that does not fit in 64 bits");
  }
  return absl::OkStatus();
}

absl::Status ReadInfo(uint64_t index, Cursor* cursor, TensorInfo* tensor) {
  absl::Status status = ReadName(index, cursor, tensor);
  if (status.ok()) status = ReadShape(cursor, tensor);
  if (status.ok()) status = ReadType(cursor, tensor);
  if (status.ok()) status = ComputeBytes(tensor);
  if (!status.ok()) return status;
  if (!cursor->Read(&tensor->offset)) {
    return cursor->Ends(absl::StrCat("the offset of the tensor ", Quoted(tensor->name)));
  }
  return absl::OkStatus();
}

absl::Status CheckNoOverlap(const std::vector<TensorInfo>& tensors) {
  std::vector<const TensorInfo*> by_offset;
  by_offset.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) by_offset.push_back(&tensor);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const TensorInfo* a, const TensorInfo* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const TensorInfo& before = *by_offset[i - 1];
    if (by_offset[i]->offset - before.offset < before.bytes) {
      return TensorError(*by_offset[i], absl::StrCat("overlaps the tensor ", Quoted(before.name)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TensorInfo>> ReadTensorInfos(uint64_t count, Cursor* cursor) {
  if (count > kMaxTensors) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file claims ", count, " tensors; at most ", kMaxTensors, " are read"));
  }
  if (count > cursor->remaining() / kMinInfoBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file claims ", count, " tensors, more than fit in the ",
                     cursor->remaining(), " bytes after its metadata"));
  }
  std::vector<TensorInfo> tensors(count);
  for (uint64_t i = 0; i < count; ++i) {
    const absl::Status status = ReadInfo(i, cursor, &tensors[i]);
    if (!status.ok()) return status;
  }
  return tensors;
}

absl::Status PlaceTensors(const std::byte* memory, uint64_t file_bytes, uint64_t data_start,
                          uint32_t alignment, std::vector<TensorInfo>* tensors) {
  const uint64_t data_bytes = file_bytes > data_start ? file_bytes - data_start : 0;
  for (TensorInfo& tensor : *tensors) {
    if (tensor.offset % alignment != 0) {
      return TensorError(tensor,
                         absl::StrCat("is at offset ", tensor.offset,
                                      ", which is no multiple of the alignment ", alignment));
    }
    if (tensor.offset > data_bytes || tensor.bytes > data_bytes - tensor.offset) {
      return TensorError(tensor,
                         absl::StrCat("of ", tensor.bytes, " bytes at offset ", tensor.offset,
                                      " is not all in the file, which has ", data_bytes,
                                      " bytes of tensor data: it may be cut short"));
    }
    tensor.offset += data_start;
    tensor.data = memory + tensor.offset;
  }
  return CheckNoOverlap(*tensors);
}

}  // namespace trine::gguf
