// Parses JSON that comes from outside, and writes JSON. Members keep their order, because a
// schema's properties are generated in that order.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace trine::server {

using Json = nlohmann::ordered_json;

inline constexpr int kMaxJsonDepth = 64;

// Parses JSON. Returns INVALID_ARGUMENT, with line and column if the parser names them, for text
// that is not JSON in UTF-8, has numbers that no double can hold, names a member twice, or is
// nested deeper than kMaxJsonDepth. Takes linear time for any text.
absl::StatusOr<Json> ParseJson(std::string_view text);

// Writes JSON on one line. Writes invalid UTF-8 as U+FFFD, and numbers that are not finite as null.
std::string Dump(const Json& json);

}  // namespace trine::server
