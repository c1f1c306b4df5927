#include "runtime/gguf/disk_space.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_format.h"

namespace trine::gguf {

absl::Status CheckDiskSpace(const std::string& path, uint64_t bytes) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  const std::filesystem::space_info space =
      std::filesystem::space(folder.empty() ? "." : folder, error);
  if (error || bytes <= space.available) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s: takes %.1f GB, and the disk has room for %.1f GB", path,
      static_cast<double>(bytes) * 1e-9, static_cast<double>(space.available) * 1e-9));
}

}  // namespace trine::gguf
