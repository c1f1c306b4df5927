// A small file kept between runs that is good under one key alone: under another, or damaged, it
// counts as absent.
#ifndef TRINE_BACKENDS_VULKAN_KEYED_FILE_H_
#define TRINE_BACKENDS_VULKAN_KEYED_FILE_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backends/vulkan/device_caps.h"

namespace trine::vulkan {

// The bytes of a value, at the end of a key or of data.
template <class T>
void AppendBytes(std::vector<uint8_t>* bytes, const T& value) {
  const size_t at = bytes->size();
  bytes->resize(at + sizeof(value));
  std::memcpy(bytes->data() + at, &value, sizeof(value));
}

// FNV-1a: tells damage and names apart, not malice.
uint64_t HashOf(const uint8_t* data, size_t bytes);

class KeyedFile {
 public:
  // An empty path: nothing is read or written.
  KeyedFile(std::string path, std::vector<uint8_t> key)
      : path_(std::move(path)), key_(std::move(key)) {}

  // What was written under the key; nothing where there is nothing to be trusted.
  std::optional<std::vector<uint8_t>> Read() const;

  // Replaces the file in one step: whoever reads sees the old one or the new one. Makes its folder.
  // FAILED_PRECONDITION, with the step that failed and why.
  absl::Status Write(const std::vector<uint8_t>& data) const;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<uint8_t> key_;  // the head of the file
};

// The file of a device that ends in `suffix`, in the folder TRINE_VULKAN_CACHE ("off": none), or
// else in trine/ of the user's cache folder. "" where there is none.
std::string CachePath(const DeviceCaps& caps, const std::string& suffix);

// Of the files beside `path` whose names are the same but for what is behind the last '-', and end
// in the same suffix: all but the `n` that were written last are removed, as far as that can be.
void KeepNewest(const std::string& path, size_t n);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_KEYED_FILE_H_
