// Makes messages about files, and makes text from a file safe for a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace trine::gguf {

// Returns the status with "path: " before its message.
inline absl::Status About(std::string_view path, const absl::Status& status) {
  return absl::Status(status.code(),
                      std::string(path).append(": ").append(std::string(status.message())));
}

// Returns the text in quotes, cut to fit on a line. Writes what a terminal could obey, and what is
// not UTF-8, as \xNN, \n or \t.
std::string Quoted(std::string_view text);

// Returns the text as Quoted writes it, but without quotes and without a limit.
std::string Printable(std::string_view text);

// Returns at most the first `bytes` of `text`, without cutting a UTF-8 character.
std::string_view Cut(std::string_view text, size_t bytes);

}  // namespace trine::gguf
