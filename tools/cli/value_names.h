// What the value of an option is called in --help, in the manual and in completions, where it is
// the path of something: the name tells a person, and a shell, what to put there.
#ifndef TRINE_TOOLS_CLI_VALUE_NAMES_H_
#define TRINE_TOOLS_CLI_VALUE_NAMES_H_

#include "absl/strings/string_view.h"

namespace CLI {
class App;
}  // namespace CLI

namespace trine {

struct PathValue {
  const char* name;
  const char* suffix;  // what the files' names end with; "": any
  bool folder;
};

// nullptr when a value of that name is no path.
const PathValue* FindPathValue(absl::string_view name);

// Gives the values of well-known options (--model, --plugin, --output, ...) those names, in `app`
// and all below it, where the command itself left the parser's plain TEXT.
void NameValues(CLI::App* app);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_VALUE_NAMES_H_
