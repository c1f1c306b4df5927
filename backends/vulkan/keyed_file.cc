#include "backends/vulkan/keyed_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace trine::vulkan {
namespace {

// FNV-1a: finds damage, not malice.
uint64_t Checksum(const uint8_t* data, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ data[i]) * 0x100000001b3;
  return hash;
}

bool WriteAll(int fd, const std::vector<uint8_t>& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

// The file: the key, the checksum of the data, the data.
std::optional<std::vector<uint8_t>> KeyedFile::Read() const {
  if (path_.empty()) return std::nullopt;
  std::ifstream in(path_, std::ios::binary);
  const std::vector<uint8_t> file((std::istreambuf_iterator<char>(in)), {});
  const size_t head = key_.size() + sizeof(uint64_t);
  if (file.size() < head || !std::equal(key_.begin(), key_.end(), file.begin())) {
    return std::nullopt;
  }
  uint64_t checksum = 0;
  std::memcpy(&checksum, file.data() + key_.size(), sizeof(checksum));
  if (checksum != Checksum(file.data() + head, file.size() - head)) return std::nullopt;
  return std::vector<uint8_t>(file.begin() + static_cast<ptrdiff_t>(head), file.end());
}

absl::Status KeyedFile::Write(const std::vector<uint8_t>& data) const {
  if (path_.empty()) return absl::OkStatus();
  const auto error = [&] {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " can't be written: ", std::strerror(errno)));
  };
  std::error_code ignored;  // mkstemp says what is wrong
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  std::vector<uint8_t> file = key_;
  AppendBytes(&file, Checksum(data.data(), data.size()));
  file.insert(file.end(), data.begin(), data.end());
  std::string temporary = path_ + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return error();
  bool good = WriteAll(fd, file) && fsync(fd) == 0;
  good = close(fd) == 0 && good;
  if (good && std::rename(temporary.c_str(), path_.c_str()) == 0) return absl::OkStatus();
  absl::Status status = error();
  unlink(temporary.c_str());
  return status;
}

std::string CachePath(const DeviceCaps& caps, const char* suffix) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  std::string folder = variable("TRINE_VULKAN_CACHE");
  if (folder == "off") return "";
  if (folder.empty() && variable("XDG_CACHE_HOME").starts_with('/')) {
    folder = variable("XDG_CACHE_HOME") + "/trine";
  } else if (folder.empty() && variable("HOME").starts_with('/')) {
    folder = variable("HOME") + "/.cache/trine";
  }
  if (folder.empty()) return "";
  const absl::string_view uuid(reinterpret_cast<const char*>(caps.uuid.data()), caps.uuid.size());
  return absl::StrCat(folder, "/vulkan-", absl::BytesToHexString(uuid), suffix);
}

}  // namespace trine::vulkan
