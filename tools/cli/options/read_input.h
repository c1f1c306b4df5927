// Reads the text for a command from the command line, a file, or standard input. Also finds the
// model that comes with the program.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/cli/options/command_line.h"

namespace trine {

// The text of a command, or the file that it comes from.
struct PromptSource {
  std::string text;
  std::string file;  // "-": standard input
  bool has_text = false;

  bool given() const { return has_text || !file.empty(); }
};

// Adds -p and -f. `what` names the text in their help.
void AddPromptOptions(Command command, const std::string& what, PromptSource* source);

// Returns the text. Returns INVALID_ARGUMENT if no text was given, or if it is not UTF-8.
absl::StatusOr<std::string> ReadPrompt(const PromptSource& source);

// Reads a whole file, or standard input for "-". The error says why it can't be read.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

// Returns the path of the model that commands use if they were given none. It lies in the share
// folder next to the folder of the program, which is installed or just built.
std::string DefaultModelPath();

}  // namespace trine
