// Helpers of the answers' tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tools/server/openai/answers/answer_writer.h"
#include "tools/server/openai/json.h"

namespace trine::server {

inline constexpr Usage kUsage{.prompt_tokens = 7, .completion_tokens = 2, .cached_tokens = 4};

inline AnswerHead Head() { return {.id = "chatcmpl-1", .model = "tales", .created = 1700000000}; }

// Returns the JSON of each event's data.
inline std::vector<Json> Data(const Frames& frames) {
  std::vector<Json> data;
  const std::vector<std::string> events = absl::StrSplit(frames.text(), "\n\n");
  EXPECT_EQ(events.back(), "");
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(events[i], '\n'))) {
      if (line.rfind("data: {", 0) == 0) data.push_back(Json::parse(line.substr(6)));
    }
  }
  return data;
}

}  // namespace trine::server
