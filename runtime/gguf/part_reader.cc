#include "runtime/gguf/part_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/cursor.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/quoted.h"

namespace trine::gguf {
namespace {

// A name of one byte and its length, rank, one dimension, type, and offset.
constexpr uint64_t kMinInfoBytes = 8 + 1 + 4 + 8 + 4 + 8;

absl::Status TensorError(const TensorInfo& tensor, const std::string& message) {
  return Invalid("the tensor ", Quoted(tensor.name), " ", message);
}

absl::Status ReadName(uint64_t index, Cursor* cursor, TensorInfo* tensor) {
  if (!cursor->ReadString(&tensor->name)) {
    return cursor->Ends(absl::StrCat("the name of tensor ", index));
  }
  if (tensor->name.empty() || tensor->name.size() > kMaxTensorNameBytes) {
    return Invalid("the name of tensor ", index, " has ", tensor->name.size(),
                   " bytes; expected 1 to ", kMaxTensorNameBytes);
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

// Computes `bytes` from type and shape.
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

// `cursor` must be at the first tensor, and is left after the last. The result's offsets are the
// file's own, from the start of its tensor data; `data` is not set.
absl::StatusOr<std::vector<TensorInfo>> ReadTensorInfos(uint64_t count, Cursor* cursor) {
  if (count > kMaxTensors) {
    return Invalid("the file claims ", count, " tensors; at most ", kMaxTensors, " are read");
  }
  if (count > cursor->remaining() / kMinInfoBytes) {
    return Invalid("the file claims ", count, " tensors, more than fit in the ",
                   cursor->remaining(), " bytes after its metadata");
  }
  std::vector<TensorInfo> tensors(count);
  for (uint64_t i = 0; i < count; ++i) {
    if (const absl::Status s = ReadInfo(i, cursor, &tensors[i]); !s.ok()) return s;
  }
  return tensors;
}

// Makes `offset` count from `memory`, where the file's `file_bytes` bytes are, and sets `data`.
// `data_start`: where tensor data begins.
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

absl::Status CheckMagic(Cursor* cursor) {
  uint32_t magic = 0;
  char text[4];
  if (!cursor->Read(&magic)) return cursor->Ends("the magic number of a GGUF file");
  std::memcpy(text, &magic, sizeof(text));
  if (std::memcmp(text, kMagic, sizeof(text)) == 0) return absl::OkStatus();
  const std::string_view found(text, sizeof(text));
  if (found == "FUGG") return absl::UnimplementedError("the file is big-endian, which is not read");
  return Invalid("is no GGUF file: it begins with ", Quoted(found), " and not 'GGUF'");
}

absl::Status CheckVersion(uint32_t version) {
  if (version == 2 || version == 3) return absl::OkStatus();
  if (version == 1) {
    return absl::UnimplementedError(
        "the file has version 1 of GGUF; versions 2 and 3 are read: convert the model again");
  }
  const uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= 3) {
    return absl::UnimplementedError(
        absl::StrCat("the file is big-endian GGUF of version ", swapped,
                     ", which is not read: convert the model for a little-endian machine"));
  }
  return absl::UnimplementedError(
      absl::StrCat("the file has version ", version, " of GGUF; versions 2 and 3 are read"));
}

absl::StatusOr<uint32_t> Alignment(const Metadata& metadata) {
  const absl::StatusOr<int64_t> alignment =
      metadata.IntegerOr(kAlignmentKey, kMinAlignment, kMaxAlignment, kDefaultAlignment);
  if (!alignment.ok()) return alignment.status();
  if ((*alignment & (*alignment - 1)) != 0) {
    return Invalid("the metadata key '", kAlignmentKey, "' is ", *alignment,
                   "; expected a power of two");
  }
  return static_cast<uint32_t>(*alignment);
}

}  // namespace

absl::StatusOr<PartContents> ReadPart(const std::byte* memory, uint64_t file_bytes) {
  Cursor cursor(memory, file_bytes);
  PartContents part;
  uint64_t tensor_count = 0, key_count = 0;
  absl::Status status = CheckMagic(&cursor);
  if (!status.ok()) return status;
  if (!cursor.Read(&part.version)) return cursor.Ends("the version");
  status = CheckVersion(part.version);
  if (!status.ok()) return status;
  if (!cursor.Read(&tensor_count)) return cursor.Ends("the number of tensors");
  if (!cursor.Read(&key_count)) return cursor.Ends("the number of metadata keys");

  absl::StatusOr<Metadata> metadata = ReadMetadata(key_count, &cursor);
  if (!metadata.ok()) return metadata.status();
  part.metadata = std::move(*metadata);
  const absl::StatusOr<uint32_t> alignment = Alignment(part.metadata);
  if (!alignment.ok()) return alignment.status();

  absl::StatusOr<std::vector<TensorInfo>> tensors = ReadTensorInfos(tensor_count, &cursor);
  if (!tensors.ok()) return tensors.status();
  part.tensors = std::move(*tensors);
  const uint64_t data_start = (cursor.position() + *alignment - 1) / *alignment * *alignment;
  status = PlaceTensors(memory, file_bytes, data_start, *alignment, &part.tensors);
  if (!status.ok()) return status;
  return part;
}

}  // namespace trine::gguf
