// Room on a disk, asked for before it is needed.
#ifndef TRINE_RUNTIME_GGUF_DISK_SPACE_H_
#define TRINE_RUNTIME_GGUF_DISK_SPACE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace trine::gguf {

// RESOURCE_EXHAUSTED when a file of `bytes` would not fit where `path` is to be. OK where that
// can't be told.
absl::Status CheckDiskSpace(const std::string& path, uint64_t bytes);

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_DISK_SPACE_H_
