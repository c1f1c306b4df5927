#include "backends/vulkan/memory/keyed_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace trine::vulkan {
namespace {

// Returns 0 or an errno value.
int WriteAll(int fd, const std::vector<uint8_t>& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;  // no error is reported, and trying again would not end
    done += static_cast<size_t>(n);
  }
  return 0;
}

// Returns nullopt for a path that is no regular file: it may be someone else's folder or pipe.
std::vector<uint8_t> ReadAll(const std::string& path) {
  std::vector<uint8_t> bytes;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return bytes;
  struct stat info {};
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    bytes.resize(static_cast<size_t>(info.st_size));
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = read(fd, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    bytes.resize(done);
  }
  close(fd);
  return bytes;
}

struct Failure {
  const char* step = "";
  int error = 0;  // an errno value; 0: none
};

// Returns the first failure, because later ones may follow from it.
Failure WriteAndClose(int fd, const std::vector<uint8_t>& bytes) {
  Failure failure = {"writing", WriteAll(fd, bytes)};
  if (failure.error == 0 && fsync(fd) != 0) failure = {"flushing", errno};
  if (close(fd) != 0 && failure.error == 0) failure = {"closing", errno};
  return failure;
}

}  // namespace

uint64_t HashOf(const uint8_t* data, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ data[i]) * 0x100000001b3;
  return hash;
}

// A file holds the key, the checksum of the data, and the data.
std::optional<std::vector<uint8_t>> KeyedFile::Read() const {
  if (path_.empty()) return std::nullopt;
  const std::vector<uint8_t> file = ReadAll(path_);
  const size_t head = key_.size() + sizeof(uint64_t);
  if (file.size() < head || !std::equal(key_.begin(), key_.end(), file.begin())) {
    return std::nullopt;
  }
  uint64_t checksum = 0;
  std::memcpy(&checksum, file.data() + key_.size(), sizeof(checksum));
  if (checksum != HashOf(file.data() + head, file.size() - head)) return std::nullopt;
  return std::vector<uint8_t>(file.begin() + static_cast<ptrdiff_t>(head), file.end());
}

absl::Status KeyedFile::Write(const std::vector<uint8_t>& data) const {
  if (path_.empty()) return absl::OkStatus();
  const auto failed = [&](const Failure& failure) {
    return absl::FailedPreconditionError(absl::StrCat(path_, " can't be written: ", failure.step,
                                                      ": ", std::strerror(failure.error)));
  };
  std::error_code ignored;  // mkstemp reports what is wrong
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  std::vector<uint8_t> file = key_;
  AppendBytes(&file, HashOf(data.data(), data.size()));
  file.insert(file.end(), data.begin(), data.end());
  std::string temporary = path_ + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return failed({"making a file beside it", errno});
  Failure failure = WriteAndClose(fd, file);
  if (failure.error == 0 && std::rename(temporary.c_str(), path_.c_str()) != 0) {
    failure = {"renaming", errno};
  }
  if (failure.error == 0) return absl::OkStatus();
  unlink(temporary.c_str());
  return failed(failure);
}

std::string CachePath(const DeviceCaps& caps, const std::string& suffix) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  std::string folder = variable("TRINE_VULKAN_CACHE");
  if (absl::EqualsIgnoreCase(folder, "off")) return "";
  if (folder.empty() && variable("XDG_CACHE_HOME").starts_with('/')) {
    folder = variable("XDG_CACHE_HOME") + "/trine";
  } else if (folder.empty() && variable("HOME").starts_with('/')) {
    folder = variable("HOME") + "/.cache/trine";
  }
  if (folder.empty()) return "";
  const absl::string_view uuid(reinterpret_cast<const char*>(caps.uuid.data()), caps.uuid.size());
  return absl::StrCat(folder, "/vulkan-", absl::BytesToHexString(uuid), suffix);
}

void KeepNewest(const std::string& path, size_t n) {
  namespace fs = std::filesystem;
  const std::string name = fs::path(path).filename().string();
  const size_t dash = name.rfind('-');
  if (dash == std::string::npos) return;
  const std::string prefix = name.substr(0, dash + 1), suffix = fs::path(name).extension().string();
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;  // another process may be removing the same files
  for (fs::directory_iterator at(fs::path(path).parent_path(), error), end; !error && at != end;
       at.increment(error)) {
    const std::string other = at->path().filename().string();
    std::error_code gone;
    const fs::file_time_type written = at->last_write_time(gone);
    if (gone || !other.starts_with(prefix) || !other.ends_with(suffix)) continue;
    found.emplace_back(written, at->path());
  }
  std::sort(found.rbegin(), found.rend());
  for (size_t i = n; i < found.size(); ++i) fs::remove(found[i].second, error);
}

}  // namespace trine::vulkan
