// Reads facts about a shared object from its file without loading it. Loading would run its
// constructors, and an object built with a sanitizer ends a process that was built without one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

// The facts of a shared object that decide whether it may be loaded as a plugin.
struct ElfFacts {
  std::vector<std::string> needed;  // libraries that the loader must find
  bool exports_query = false;       // exports trine_plugin_query
  bool wants_asan = false;
  bool wants_tsan = false;
  std::optional<std::string> hardware;  // the text of TRINE_PLUGIN_HARDWARE; nullopt: not declared
};

// Reads the file. Errors are sentences for a person: no permission, not a shared object, ...
absl::StatusOr<ElfFacts> InspectElf(const std::string& path);

}  // namespace trine
