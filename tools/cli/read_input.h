// Where a command's text comes from: the command line, a file, or standard input.
#ifndef TRINE_TOOLS_CLI_READ_INPUT_H_
#define TRINE_TOOLS_CLI_READ_INPUT_H_

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"

namespace trine {

struct PromptSource {
  std::string text;
  std::string file;  // "-": standard input
  bool has_text = false;

  bool given() const { return has_text || !file.empty(); }
};

// -p and -f; `what` says what the text is.
void AddPromptOptions(CLI::App* command, const std::string& what, PromptSource* source);

// INVALID_ARGUMENT when none was given, and when it is no UTF-8.
absl::StatusOr<std::string> ReadPrompt(const PromptSource& source);

// A whole file, or standard input for "-". Says why it can't be read.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_READ_INPUT_H_
