// Reads one GGUF file: header, metadata, tensors.
#ifndef TRINE_RUNTIME_GGUF_PART_READER_H_
#define TRINE_RUNTIME_GGUF_PART_READER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/metadata.h"
#include "runtime/gguf/tensor_info.h"

namespace trine::gguf {

struct PartContents {
  uint32_t version = 0;
  Metadata metadata;
  std::vector<TensorInfo> tensors;
};

// The result views `memory`. Tensor names are not held against each other: they are unique over all
// parts of a file.
absl::StatusOr<PartContents> ReadPart(const std::byte* memory, uint64_t file_bytes);

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_PART_READER_H_
