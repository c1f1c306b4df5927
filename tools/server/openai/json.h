// JSON as it comes from outside, and back into text. Members keep their order: a schema's
// properties are generated in it.
#ifndef TRINE_TOOLS_SERVER_OPENAI_JSON_H_
#define TRINE_TOOLS_SERVER_OPENAI_JSON_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace trine::server {

using Json = nlohmann::ordered_json;

inline constexpr int kMaxJsonDepth = 64;

// INVALID_ARGUMENT, with line and column, for what is no JSON in UTF-8, has numbers that no double
// holds, names a member twice or is nested deeper than kMaxJsonDepth. Linear in the text, whatever
// it says.
absl::StatusOr<Json> ParseJson(std::string_view text);

// On one line. What is not UTF-8 becomes U+FFFD, what is no number becomes null.
std::string Dump(const Json& json);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_JSON_H_
