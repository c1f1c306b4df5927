// Writes a file that appears under its name only when it is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trine::gguf {

class OutputFile {
 public:
  // Creates a temporary file in the folder of `path`. Messages name `path`.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path);
  ~OutputFile();  // removes the temporary file unless it was published
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Writes and publishes a whole file.
  static absl::Status Write(const std::string& path, const std::string& text);

  absl::Status Append(const void* data, uint64_t bytes);
  absl::Status AppendZeros(uint64_t bytes);
  // Closes the temporary file. All data is on the disk when it returns.
  absl::Status Close();
  // Gives the file its name and replaces a file that has this name. REQUIRES: Close was called.
  absl::Status Publish();

 private:
  OutputFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  absl::Status Error(const char* what) const;

  std::string path_;
  std::string temporary_;  // empty once published
  int fd_;
};

// Returns RESOURCE_EXHAUSTED if the disk of `path` has no room for a file of `bytes`. Returns OK if
// that can't be found out.
absl::Status CheckDiskSpace(const std::string& path, uint64_t bytes);

}  // namespace trine::gguf
