// What a shared object's file says of itself, read without loading it: loading runs its
// constructors, and a file built with a sanitizer ends a process that was not.
#ifndef TRINE_PLUGINS_ELF_FILE_H_
#define TRINE_PLUGINS_ELF_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

struct ElfFacts {
  std::vector<std::string> needed;  // libraries it asks for
  bool exports_query = false;       // has the plugin's one symbol
  bool wants_asan = false;
  bool wants_tsan = false;
  std::optional<std::string> hardware;  // as it says in TRINE_PLUGIN_HARDWARE
};

// Errors are sentences for a person: no permission, not a shared object, another machine's.
absl::StatusOr<ElfFacts> InspectElf(const std::string& path);

}  // namespace trine

#endif  // TRINE_PLUGINS_ELF_FILE_H_
