#include "runtime/gguf/file_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine::gguf {
namespace {

uint64_t Nanoseconds(const timespec& t) {
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

// A non-empty regular file, open for reading.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }

  absl::Status Open(const std::string& path) {
    // Non-blocking, because opening a pipe would wait for ever.
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd_ < 0) {
      if (errno == ENOENT || errno == ENOTDIR) return absl::NotFoundError("there is no such file");
      if (errno == EACCES || errno == EPERM) {
        return absl::PermissionDeniedError("no permission to read the file");
      }
      return absl::UnavailableError(absl::StrCat("cannot be opened: ", std::strerror(errno)));
    }
    struct stat st {};
    if (fstat(fd_, &st) != 0) {
      return absl::UnavailableError(absl::StrCat("cannot be examined: ", std::strerror(errno)));
    }
    if (S_ISDIR(st.st_mode)) return absl::InvalidArgumentError("is a folder, not a file");
    if (!S_ISREG(st.st_mode)) {
      return absl::InvalidArgumentError("is a device, pipe or socket, not a regular file");
    }
    if (st.st_size <= 0) return absl::InvalidArgumentError("the file is empty");
    bytes_ = static_cast<uint64_t>(st.st_size);
    stamp_ = {bytes_, Nanoseconds(st.st_mtim), Nanoseconds(st.st_ctim),
              static_cast<uint64_t>(st.st_dev), static_cast<uint64_t>(st.st_ino)};
    return absl::OkStatus();
  }

  int fd() const { return fd_; }
  uint64_t bytes() const { return bytes_; }
  const FileStamp& stamp() const { return stamp_; }

 private:
  int fd_ = -1;
  uint64_t bytes_ = 0;
  FileStamp stamp_;
};

absl::StatusOr<uint64_t> WholePages(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes > SIZE_MAX - page) {
    return absl::ResourceExhaustedError(
        absl::StrCat("its ", bytes, " bytes do not fit in this machine's address space"));
  }
  return (bytes + page - 1) / page * page;
}

}  // namespace

absl::StatusOr<FileMemory> FileMemory::Map(const std::string& path) {
  Descriptor file;
  const absl::Status status = file.Open(path);
  if (!status.ok()) return status;
  const absl::StatusOr<uint64_t> mapped_bytes = WholePages(file.bytes());
  if (!mapped_bytes.ok()) return mapped_bytes.status();
  void* data = mmap(nullptr, file.bytes(), PROT_READ, MAP_SHARED, file.fd(), 0);
  if (data == MAP_FAILED) {
    return absl::UnavailableError(absl::StrCat("cannot be mapped into memory (",
                                               std::strerror(errno),
                                               "); reading it without mmap may work"));
  }
  FileMemory memory(static_cast<std::byte*>(data), file.bytes(), *mapped_bytes);
  memory.stamp_ = file.stamp();
  return memory;
}

absl::StatusOr<FileMemory> FileMemory::Allocate(uint64_t bytes) {
  const absl::StatusOr<uint64_t> mapped_bytes = WholePages(bytes);
  if (!mapped_bytes.ok()) return mapped_bytes.status();
  void* data =
      mmap(nullptr, *mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for its ", bytes, " bytes: ", std::strerror(errno)));
  }
  return FileMemory(static_cast<std::byte*>(data), bytes, *mapped_bytes);
}

absl::StatusOr<FileMemory> FileMemory::Read(const std::string& path) {
  // One call of read(2) reads at most 2 GiB.
  constexpr uint64_t kMaxChunk = 1u << 30;
  Descriptor file;
  const absl::Status status = file.Open(path);
  if (!status.ok()) return status;
  absl::StatusOr<FileMemory> memory = Allocate(file.bytes());
  if (!memory.ok()) return memory.status();
  memory->stamp_ = file.stamp();
  for (uint64_t done = 0; done < file.bytes();) {
    const ssize_t n = pread(file.fd(), memory->data_ + done,
                            std::min(file.bytes() - done, kMaxChunk), static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot be read at byte ", done, ": ", std::strerror(errno)));
    }
    if (n == 0) {
      return absl::UnavailableError(
          absl::StrCat("was cut from ", file.bytes(), " to ", done, " bytes while it was read"));
    }
    done += static_cast<uint64_t>(n);
  }
  mprotect(memory->data_, memory->mapped_bytes_, PROT_READ);
  return memory;
}

absl::StatusOr<FileMemory> FileMemory::Copy(absl::Span<const std::byte> bytes) {
  if (bytes.empty()) return absl::InvalidArgumentError("the file is empty");
  absl::StatusOr<FileMemory> memory = Allocate(bytes.size());
  if (!memory.ok()) return memory.status();
  std::memcpy(memory->data_, bytes.data(), bytes.size());
  mprotect(memory->data_, memory->mapped_bytes_, PROT_READ);
  return memory;
}

FileMemory::FileMemory(FileMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
      stamp_(other.stamp_) {}

FileMemory& FileMemory::operator=(FileMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(stamp_, other.stamp_);
  return *this;
}

FileMemory::~FileMemory() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
}

absl::Status FileMemory::LockRange(const void* data, uint64_t bytes) {
  if (mlock(data, bytes) == 0) return absl::OkStatus();
  const int error = errno;
  struct rlimit limit {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      (error == ENOMEM || error == EPERM || error == EAGAIN)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("its ", bytes, " bytes cannot be locked in memory: this process may ", "lock ",
                     limit.rlim_cur, " bytes in all (ulimit -l)"));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("its ", bytes, " bytes cannot be locked in memory: ", std::strerror(error)));
}

absl::Status FileMemory::LockRanges(const std::vector<absl::Span<const std::byte>>& ranges) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    const absl::Status status = LockRange(ranges[i].data(), ranges[i].size());
    if (status.ok()) continue;
    for (size_t j = 0; j < i; ++j) UnlockRange(ranges[j].data(), ranges[j].size());
    return status;
  }
  return absl::OkStatus();
}

void FileMemory::UnlockRange(const void* data, uint64_t bytes) { munlock(data, bytes); }

void FileMemory::Unlock() const { UnlockRange(data_, mapped_bytes_); }

void FileMemory::Release(uint64_t begin, uint64_t end) const {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;
  end = std::min(end, mapped_bytes_) / page * page;
  if (begin < end) madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

}  // namespace trine::gguf
