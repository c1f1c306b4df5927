#include "tools/cli/default_model.h"

#include <filesystem>
#include <system_error>

namespace trine {

std::string DefaultModelPath() {
  namespace fs = std::filesystem;
  constexpr const char* kName = "tales-27m-q8_0.gguf";
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path installed = folder.parent_path() / "share" / "trine" / "models" / kName;
  // build/PRESET/bin/trine
  const fs::path in_tree =
      folder.parent_path().parent_path().parent_path() / "tools" / "models" / kName;
  for (const fs::path& path : {installed, in_tree}) {
    if (fs::exists(path, error)) return path.string();
  }
  return installed.string();
}

}  // namespace trine
