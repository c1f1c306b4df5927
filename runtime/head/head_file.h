// A head as a file: JSON, written in one step, every member checked when it is read. Pure but for
// the file; any thread.
#ifndef TRINE_RUNTIME_HEAD_HEAD_FILE_H_
#define TRINE_RUNTIME_HEAD_HEAD_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/head/head.h"

namespace trine {

// "tales.head.json" for "tales.gguf".
std::string HeadPathFor(const std::string& model_path);

// The same head always gives the same bytes; numbers read back as they were.
absl::StatusOr<std::string> FormatHead(const Head& head);
// INVALID_ARGUMENT, saying which member is wrong.
absl::StatusOr<Head> ParseHead(std::string_view text);

// Messages begin with the path. NOT_FOUND where there is none, INVALID_ARGUMENT for one that is no
// head.
absl::StatusOr<Head> ReadHead(const std::string& path);
absl::Status WriteHead(const std::string& path, const Head& head);

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_HEAD_FILE_H_
