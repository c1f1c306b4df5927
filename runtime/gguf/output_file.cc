#include "runtime/gguf/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/invalid.h"

namespace trine::gguf {
namespace {

constexpr int kAttempts = 100;
constexpr uint64_t kMaxChunk = 1u << 30;

std::string SizeText(uint64_t bytes) {
  const auto amount = static_cast<double>(bytes);
  return bytes < 1'000'000'000 ? absl::StrFormat("%.1f MB", amount * 1e-6)
                               : absl::StrFormat("%.1f GB", amount * 1e-9);
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path) {
  struct stat st {};
  const bool replaces = stat(path.c_str(), &st) == 0;
  // Renaming would replace a device or a pipe with a file.
  if (replaces && !S_ISREG(st.st_mode)) {
    return Invalid(path, ": is there and is not a regular file, so it is not replaced");
  }
  // The new file must not be readable by users who could not read the old one.
  const mode_t mode = replaces ? st.st_mode & 0666 : 0666;
  for (int i = 0; i < kAttempts; ++i) {
    std::string temporary = absl::StrCat(path, ".tmp-", getpid(), "-", i);
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0) return std::unique_ptr<OutputFile>(new OutputFile(path, std::move(temporary), fd));
    if (errno == EEXIST) continue;
    return absl::UnavailableError(
        absl::StrCat(path, ": cannot be created: ", std::strerror(errno)));
  }
  return absl::UnavailableError(
      absl::StrCat(path, ": cannot be created: temporary files of earlier runs are in the way"));
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status OutputFile::Error(const char* what) const {
  const int error = errno;
  const std::string message = absl::StrCat(path_, ": ", what, ": ", std::strerror(error));
  return error == ENOSPC || error == EDQUOT || error == EFBIG
             ? absl::ResourceExhaustedError(message)
             : absl::UnavailableError(message);
}

absl::Status OutputFile::Write(const std::string& path, const std::string& text) {
  auto file = Create(path);
  if (!file.ok()) return file.status();
  absl::Status s = (*file)->Append(text.data(), text.size());
  if (s.ok()) s = (*file)->Close();
  if (s.ok()) s = (*file)->Publish();
  return s;
}

absl::Status OutputFile::Append(const void* data, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t n =
        write(fd_, static_cast<const std::byte*>(data) + done, std::min(bytes - done, kMaxChunk));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error("cannot be written");
    done += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::Status OutputFile::AppendZeros(uint64_t bytes) {
  static constexpr char kZeros[4096] = {};
  while (bytes > 0) {
    const uint64_t n = std::min<uint64_t>(bytes, sizeof(kZeros));
    if (absl::Status s = Append(kZeros, n); !s.ok()) return s;
    bytes -= n;
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Close() {
  // Without fsync, a power cut after the rename could leave an empty file with that name.
  if (fsync(fd_) != 0 && errno != EINVAL && errno != ENOSYS) return Error("cannot be written");
  if (close(std::exchange(fd_, -1)) != 0) return Error("cannot be written");
  return absl::OkStatus();
}

absl::Status OutputFile::Publish() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return Error("cannot get its name");
  temporary_.clear();
  return absl::OkStatus();
}

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
