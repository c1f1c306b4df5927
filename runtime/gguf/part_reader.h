// Reads one GGUF file or one part of a split file: header, metadata, tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/quant/block_types.h"
#include "runtime/gguf/metadata.h"

namespace trine::gguf {

// A tensor of a GGUF file: its name, type and shape, and where its data is. A view: the file owns
// the name and the data.
struct TensorInfo {
  std::string_view name;
  quant::Type type = quant::Type::kF32;
  uint32_t rank = 1;
  int64_t dims[4] = {1, 1, 1, 1};  // innermost first
  size_t part = 0;                 // index into File::parts
  uint64_t offset = 0;             // counted from the beginning of the part's memory
  uint64_t bytes = 0;
  const std::byte* data = nullptr;

  int64_t Rows() const { return dims[1] * dims[2] * dims[3]; }
};

struct PartContents {
  uint32_t version = 0;
  Metadata metadata;
  std::vector<TensorInfo> tensors;
};

// Reads a file's contents. The result views `memory`. Does not look for duplicate tensor names,
// because names must be unique over all parts of a file.
absl::StatusOr<PartContents> ReadPart(const std::byte* memory, uint64_t file_bytes);

}  // namespace trine::gguf
