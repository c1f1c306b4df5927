// Reads a file's list of tensors and holds each against the file: known type, whole blocks, in
// bounds, aligned, overlapping no other.
#ifndef TRINE_RUNTIME_GGUF_TENSOR_READER_H_
#define TRINE_RUNTIME_GGUF_TENSOR_READER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gguf/cursor.h"
#include "runtime/gguf/tensor_info.h"

namespace trine::gguf {

// `cursor` stands at the first tensor and is left after the last. The offsets of the result are
// those of the file, counted from the start of its tensor data; `data` is not set.
absl::StatusOr<std::vector<TensorInfo>> ReadTensorInfos(uint64_t count, Cursor* cursor);

// Places the tensors: makes `offset` count from `memory`, where the file's `file_bytes` bytes lie,
// and sets `data`. `data_start` is where tensor data begins.
absl::Status PlaceTensors(const std::byte* memory, uint64_t file_bytes, uint64_t data_start,
                          uint32_t alignment, std::vector<TensorInfo>* tensors);

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_TENSOR_READER_H_
