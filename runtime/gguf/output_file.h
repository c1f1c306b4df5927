// A file that appears under its name only when it is complete.
#ifndef TRINE_RUNTIME_GGUF_OUTPUT_FILE_H_
#define TRINE_RUNTIME_GGUF_OUTPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trine::gguf {

class OutputFile {
 public:
  // A temporary file in the folder of `path`. Messages name `path`.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path);
  ~OutputFile();  // removes the temporary file when it was not published
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // All of a file in one go.
  static absl::Status Write(const std::string& path, const std::string& text);

  absl::Status Append(const void* data, uint64_t bytes);
  absl::Status AppendZeros(uint64_t bytes);
  absl::Status Close();    // on the disk when it returns
  absl::Status Publish();  // closed before; replaces what has the name

 private:
  OutputFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  absl::Status Error(const char* what) const;

  std::string path_;
  std::string temporary_;  // empty once published
  int fd_;
};

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_OUTPUT_FILE_H_
