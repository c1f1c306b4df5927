#include "tools/cli/default_model.h"

#include <filesystem>
#include <system_error>

namespace trine {

std::string DefaultModelPath() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path prefix = program.parent_path().parent_path();
  return (prefix / "share" / "trine" / "models" / "tales-27m-q8_0.gguf").string();
}

}  // namespace trine
