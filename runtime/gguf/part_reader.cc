#include "runtime/gguf/part_reader.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/gguf/cursor.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/metadata_reader.h"
#include "runtime/gguf/quoted.h"
#include "runtime/gguf/tensor_reader.h"

namespace trine::gguf {
namespace {

absl::Status CheckMagic(Cursor* cursor) {
  uint32_t magic = 0;
  char text[4];
  if (!cursor->Read(&magic)) return cursor->Ends("the magic number of a GGUF file");
  std::memcpy(text, &magic, sizeof(text));
  if (std::memcmp(text, kMagic, sizeof(text)) == 0) return absl::OkStatus();
  const std::string_view found(text, sizeof(text));
  if (found == "FUGG") return absl::UnimplementedError("the file is big-endian, which is not read");
  return absl::InvalidArgumentError(
      absl::StrCat("is no GGUF file: it begins with ", Quoted(found), " and not 'GGUF'"));
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
    return absl::InvalidArgumentError(absl::StrCat("the metadata key '", kAlignmentKey, "' is ",
                                                   *alignment, "; expected a power of two"));
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

  absl::StatusOr<Metadata> metadata = MetadataReader(&cursor).Read(key_count);
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
