// Keeps a small file between runs. The file is valid under one key. A file with another key, or a
// damaged file, is treated as absent.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backends/vulkan/device/device_caps.h"

namespace trine::vulkan {

// Appends the bytes of a value to a key or to data.
template <class T>
void AppendBytes(std::vector<uint8_t>* bytes, const T& value) {
  const size_t at = bytes->size();
  bytes->resize(at + sizeof(value));
  std::memcpy(bytes->data() + at, &value, sizeof(value));
}

// FNV-1a: detects damage and distinguishes names, but does not resist malice.
uint64_t HashOf(const uint8_t* data, size_t bytes);

class KeyedFile {
 public:
  // With an empty path, nothing is read or written.
  KeyedFile(std::string path, std::vector<uint8_t> key)
      : path_(std::move(path)), key_(std::move(key)) {}

  // Returns the data that was written under the key, or nullopt if there is no valid file.
  std::optional<std::vector<uint8_t>> Read() const;

  // Replaces the file in one step: a reader sees the old file or the new one. Makes its folder.
  // Returns FAILED_PRECONDITION, naming the step that failed and the reason.
  absl::Status Write(const std::vector<uint8_t>& data) const;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<uint8_t> key_;  // the head of the file
};

// Returns the path of a device's file with the given suffix. The file is in the folder
// TRINE_VULKAN_CACHE, or else in trine/ of the user's cache folder. Returns "" if there is no
// folder or the variable is "off".
std::string CachePath(const DeviceCaps& caps, const std::string& suffix);

// Removes files in the folder of `path`, except the `n` that were written last. Considers only
// files that have the same suffix and the same name up to the last '-'. Ignores failures.
void KeepNewest(const std::string& path, size_t n);

}  // namespace trine::vulkan
