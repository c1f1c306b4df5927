#include "runtime/kv_store/kv_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace trine {
namespace {

constexpr int kAttempts = 100;
constexpr time_t kOldSeconds = 60;

absl::Status Error(const std::string& what, int error) {
  const std::string message = absl::StrCat(what, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

// Returns why other users may have written the file, or "".
std::string NotOurs(const struct stat& st) {
  if (st.st_uid != geteuid()) {
    return absl::StrCat("belongs to another user (", st.st_uid, ", not ", geteuid(), ")");
  }
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "can be written by others";
  return "";
}

// Opens a folder that is ours alone, and makes it if needed. Returns not ok() if it can't be made.
absl::StatusOr<KvDescriptor> OpenFolder(int at, const char* name, const std::string& shown,
                                        int flags) {
  bool made = mkdirat(at, name, 0700) == 0;
  KvDescriptor fd(openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
  if (!fd.ok()) {
    if (!made && errno == ENOENT) return fd;
    return Error(absl::StrCat(shown, ": cannot be opened as a folder"), errno);
  }
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return Error(absl::StrCat(shown, ": cannot be examined"), errno);
  const std::string why = NotOurs(st);
  if (!why.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        shown, ": ", why, ", so what is in it can't be trusted: give a folder of mode 0700"));
  }
  return fd;
}

// Returns "ab/abcd..." for a block, and "abcd..." for a model.
std::string NameOf(KvFolder::Kind kind, const Hash256& key) {
  std::string hex = ToHex(key);
  return kind == KvFolder::Kind::kBlock ? absl::StrCat(hex.substr(0, 2), "/", hex) : hex;
}

absl::Status WriteAll(int fd, std::span<const std::byte> first, std::span<const std::byte> second) {
  iovec parts[2] = {{const_cast<std::byte*>(first.data()), first.size()},
                    {const_cast<std::byte*>(second.data()), second.size()}};
  iovec* at = parts;
  while (at != parts + 2) {
    if (at->iov_len == 0) {
      ++at;
      continue;
    }
    const ssize_t n = writev(fd, at, static_cast<int>(parts + 2 - at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error("cannot be written", errno);
    auto left = static_cast<size_t>(n);
    for (iovec* part = at; part != parts + 2; ++part) {
      const size_t taken = std::min(left, part->iov_len);
      part->iov_base = static_cast<std::byte*>(part->iov_base) + taken;
      part->iov_len -= taken;
      left -= taken;
    }
  }
  return absl::OkStatus();
}

// Calls `each` with every name in a folder, except those that begin with a dot.
absl::Status ListNames(int folder, const char* name, const std::function<void(const char*)>& each) {
  const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return Error("cannot be listed", errno);
  DIR* list = fdopendir(fd);
  if (list == nullptr) {
    const int error = errno;
    close(fd);
    return Error("cannot be listed", error);
  }
  const absl::Cleanup close_list = [&] { closedir(list); };
  while (true) {
    errno = 0;
    const dirent* entry = readdir(list);
    if (entry == nullptr) return errno == 0 ? absl::OkStatus() : Error("cannot be listed", errno);
    if (entry->d_name[0] != '.') each(entry->d_name);
  }
}

// Returns whether the writer is gone: its lock is free or, without locks, the file is old.
bool IsAbandoned(int fd) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  struct stat st {};
  return fstat(fd, &st) == 0 && st.st_mtim.tv_sec + kOldSeconds < std::time(nullptr);
}

}  // namespace

KvDescriptor::~KvDescriptor() {
  if (fd_ >= 0) close(fd_);
}
KvDescriptor::KvDescriptor(KvDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
KvDescriptor& KvDescriptor::operator=(KvDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

absl::Status KvOpenFile::Read(uint64_t at, std::span<std::byte> out) const {
  for (size_t done = 0; done < out.size();) {
    const ssize_t n =
        pread(fd.get(), out.data() + done, out.size() - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error("cannot be read", errno);
    if (n == 0) return absl::DataLossError("is cut short");
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<KvFolder>> KvFolder::Open(const std::string& path) {
  auto root = OpenFolder(AT_FDCWD, path.c_str(), path, 0);
  if (!root.ok()) return root.status();
  if (!root->ok()) return absl::NotFoundError(absl::StrCat(path, ": cannot be made"));
  std::unique_ptr<KvFolder> folder(new KvFolder(path));
  const std::pair<const char*, KvDescriptor*> parts[] = {{"blocks-1", &folder->blocks_},
                                                         {"models-1", &folder->models_},
                                                         {"temporary", &folder->temporary_}};
  for (const auto& [name, fd] : parts) {
    auto part = OpenFolder(root->get(), name, absl::StrCat(path, "/", name), O_NOFOLLOW);
    if (!part.ok()) return part.status();
    *fd = *std::move(part);
  }
  return folder;
}

// Removes the file when destroyed, unless it was renamed.
struct KvFolder::Temporary {
  Temporary(int the_folder, std::string the_name, KvDescriptor the_fd)
      : folder(the_folder), name(std::move(the_name)), fd(std::move(the_fd)) {}
  Temporary(Temporary&& other) noexcept
      : folder(other.folder), name(std::exchange(other.name, "")), fd(std::move(other.fd)) {}
  ~Temporary() {
    if (!name.empty()) unlinkat(folder, name.c_str(), 0);
  }

  int folder;
  std::string name;
  KvDescriptor fd;
};

absl::StatusOr<KvFolder::Temporary> KvFolder::MakeTemporary() const {
  static std::atomic<uint64_t> count = 0;
  for (int i = 0; i < kAttempts; ++i) {
    std::string name = absl::StrCat(getpid(), "-", ++count, "-", absl::Hex(std::random_device()()));
    KvDescriptor fd(openat(temporary_.get(), name.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.ok() && errno == EEXIST) continue;
    if (!fd.ok()) return Error("a temporary file cannot be made", errno);
    // RemoveTemporaries may have been faster than the lock; the file then has no name.
    struct stat st {};
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    if (fstat(fd.get(), &st) != 0 || st.st_nlink == 0) continue;
    return Temporary(temporary_.get(), std::move(name), std::move(fd));
  }
  return absl::UnavailableError("a temporary file cannot be made");
}

absl::Status KvFolder::Write(Kind kind, const Hash256& key, std::span<const std::byte> first,
                             std::span<const std::byte> second, bool sync) const {
  if (!temporary_.ok() || FolderOf(kind) < 0) {
    return absl::PermissionDeniedError("it cannot be written to");
  }
  auto file = MakeTemporary();
  if (!file.ok()) return file.status();
  if (absl::Status s = WriteAll(file->fd.get(), first, second); !s.ok()) return s;
  if (sync && fsync(file->fd.get()) != 0 && errno != EINVAL && errno != ENOSYS) {
    return Error("cannot be written", errno);
  }
  const std::string name = NameOf(kind, key);
  for (int i = 0; i < 2; ++i) {
    if (renameat(temporary_.get(), file->name.c_str(), FolderOf(kind), name.c_str()) == 0) {
      file->name.clear();
      return absl::OkStatus();
    }
    if (errno != ENOENT || i > 0 || kind != Kind::kBlock) break;
    if (mkdirat(FolderOf(kind), name.substr(0, 2).c_str(), 0700) != 0 && errno != EEXIST) break;
  }
  return Error("cannot get its name", errno);
}

absl::StatusOr<KvOpenFile> KvFolder::OpenFile(Kind kind, const Hash256& key) const {
  if (FolderOf(kind) < 0) return absl::NotFoundError("there is no such file");
  KvOpenFile file;
  // O_NONBLOCK, because opening a pipe of that name would block for ever.
  file.fd = KvDescriptor(openat(FolderOf(kind), NameOf(kind, key).c_str(),
                                O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file.fd.ok()) {
    if (errno == ELOOP) return absl::PermissionDeniedError("is a symbolic link");
    return Error("cannot be opened", errno);
  }
  struct stat st {};
  if (fstat(file.fd.get(), &st) != 0) return Error("cannot be examined", errno);
  if (!S_ISREG(st.st_mode)) return absl::PermissionDeniedError("is not a regular file");
  const std::string why = NotOurs(st);
  if (!why.empty()) return absl::PermissionDeniedError(why);
  file.bytes = static_cast<uint64_t>(st.st_size);
  file.used_ns = static_cast<uint64_t>(st.st_mtim.tv_sec) * 1000000000u +
                 static_cast<uint64_t>(st.st_mtim.tv_nsec);
  return file;
}

bool KvFolder::Exists(Kind kind, const Hash256& key) const {
  struct stat st {};
  return FolderOf(kind) >= 0 &&
         fstatat(FolderOf(kind), NameOf(kind, key).c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void KvFolder::Remove(Kind kind, const Hash256& key) const {
  if (FolderOf(kind) >= 0) unlinkat(FolderOf(kind), NameOf(kind, key).c_str(), 0);
}

void KvFolder::Touch(Kind kind, const Hash256& key) const {
  if (FolderOf(kind) < 0) return;
  const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  utimensat(FolderOf(kind), NameOf(kind, key).c_str(), times, AT_SYMLINK_NOFOLLOW);
}

absl::Status KvFolder::ListBlocks(const std::function<void(const Hash256&)>& each) const {
  if (!blocks_.ok()) return absl::OkStatus();
  std::vector<std::string> folders;
  const absl::Status s = ListNames(blocks_.get(), ".", [&](const char* name) {
    if (std::strlen(name) == 2) folders.push_back(name);
  });
  for (const std::string& folder : folders) {
    // A folder that can't be listed was removed in the meantime, or is not a folder.
    const absl::Status ignored = ListNames(blocks_.get(), folder.c_str(), [&](const char* name) {
      const auto key = FromHex(name);
      if (key && folder == std::string_view(name, 2)) each(*key);
    });
  }
  return s;
}

int KvFolder::RemoveTemporaries() const {
  if (!temporary_.ok()) return 0;
  int removed = 0;
  const absl::Status ignored = ListNames(temporary_.get(), ".", [&](const char* name) {
    const KvDescriptor fd(
        openat(temporary_.get(), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (!fd.ok() || !IsAbandoned(fd.get())) return;
    if (unlinkat(temporary_.get(), name, 0) == 0) ++removed;
  });
  return removed;
}

}  // namespace trine
