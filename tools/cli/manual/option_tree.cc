#include "tools/cli/manual/option_tree.h"

#include <algorithm>

#include "absl/strings/strip.h"

namespace trine {

std::vector<const CommandInfo*> AllCommands(const CommandInfo& root) {
  std::vector<const CommandInfo*> all = {&root};
  for (const CommandInfo& command : root.commands) {
    const std::vector<const CommandInfo*> below = AllCommands(command);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

const CommandInfo* FindCommand(const CommandInfo& root, const std::vector<std::string>& words) {
  const CommandInfo* found = &root;
  for (const std::string& word : words) {
    const auto& below = found->commands;
    const auto next = std::find_if(below.begin(), below.end(), [&](const CommandInfo& command) {
      return command.path.back() == word;
    });
    if (next == below.end()) return nullptr;
    found = &*next;
  }
  return found;
}

std::string Summary(const std::string& description) {
  size_t end = description.size();
  for (const char* stop : {". ", ": ", "; "}) end = std::min(end, description.find(stop));
  return std::string(absl::StripSuffix(description.substr(0, end), "."));
}

}  // namespace trine
