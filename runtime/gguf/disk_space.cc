#include "runtime/gguf/disk_space.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_format.h"

namespace trine::gguf {
namespace {

std::string SizeText(uint64_t bytes) {
  const auto amount = static_cast<double>(bytes);
  return bytes < 1'000'000'000 ? absl::StrFormat("%.1f MB", amount * 1e-6)
                               : absl::StrFormat("%.1f GB", amount * 1e-9);
}

}  // namespace

absl::Status CheckDiskSpace(const std::string& path, uint64_t bytes) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  const std::filesystem::space_info space =
      std::filesystem::space(folder.empty() ? "." : folder, error);
  if (error || bytes <= space.available) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat("%s: takes %s, and the disk has room for %s",
                                                      path, SizeText(bytes),
                                                      SizeText(space.available)));
}

}  // namespace trine::gguf
