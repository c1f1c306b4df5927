#include "runtime/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

constexpr std::chrono::milliseconds kStep(10);

int OpenFolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

}  // namespace

FileLock::FileLock(const std::string& path, Kind kind)
    : fd_(kind == Kind::kFolder
              ? OpenFolderOf(path)
              : open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) {
  if (fd_ < 0) error_ = errno;
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

absl::Status FileLock::Lock(std::optional<std::chrono::milliseconds> most) {
  const int how = most ? LOCK_EX | LOCK_NB : LOCK_EX;
  const auto begin = std::chrono::steady_clock::now();
  while (error_ == 0 && flock(fd_, how) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      error_ = errno;
    } else if (std::chrono::steady_clock::now() - begin >= *most) {
      return absl::DeadlineExceededError("others have locked it for too long");
    } else {
      std::this_thread::sleep_for(kStep);
    }
  }
  if (error_ == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("it can't be locked: ", std::strerror(error_)));
}

}  // namespace trine
