// Room on a disk, asked for before it is needed.
#ifndef TRINE_RUNTIME_MAKE_MODEL_DISK_SPACE_H_
#define TRINE_RUNTIME_MAKE_MODEL_DISK_SPACE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace trine {

// RESOURCE_EXHAUSTED when a file of `bytes` would not fit where `path` is to be. OK where that
// can't be told.
absl::Status CheckDiskSpace(const std::string& path, uint64_t bytes);

}  // namespace trine

#endif  // TRINE_RUNTIME_MAKE_MODEL_DISK_SPACE_H_
