// Writes a head to a JSON file and reads it. The file appears only when it is complete. Reading
// checks every member. Any thread may call.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/head/head.h"

namespace trine {

// Returns "tales.head.json" for "tales.gguf".
std::string HeadPathFor(const std::string& model_path);

// Returns the JSON of a head. Equal heads give equal bytes, and ParseHead reads the same numbers.
absl::StatusOr<std::string> FormatHead(const Head& head);
// Returns INVALID_ARGUMENT, naming the member, if a member is wrong.
absl::StatusOr<Head> ParseHead(std::string_view text);

// Errors of these functions begin with the path. ReadHead returns NOT_FOUND if there is no file,
// and INVALID_ARGUMENT if the file is not a head.
absl::StatusOr<Head> ReadHead(const std::string& path);
absl::Status WriteHead(const std::string& path, const Head& head);

}  // namespace trine
