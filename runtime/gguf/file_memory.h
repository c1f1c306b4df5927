// One file's bytes in page-aligned memory: mapped, or read into it. Owns the memory.
#ifndef TRINE_RUNTIME_GGUF_FILE_MEMORY_H_
#define TRINE_RUNTIME_GGUF_FILE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/gguf/file_stamp.h"

namespace trine::gguf {

class FileMemory {
 public:
  // Read-only, shared with other processes and the system's page cache.
  static absl::StatusOr<FileMemory> Map(const std::string& path);
  // A private copy.
  static absl::StatusOr<FileMemory> Read(const std::string& path);
  static absl::StatusOr<FileMemory> Copy(absl::Span<const std::byte> bytes);

  FileMemory(FileMemory&& other) noexcept;
  FileMemory& operator=(FileMemory&& other) noexcept;
  ~FileMemory();

  const std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  // A multiple of the page size. What follows the file's bytes is zero.
  uint64_t mapped_bytes() const { return mapped_bytes_; }

  const FileStamp& stamp() const { return stamp_; }

  // Keeps it from being swapped out.
  absl::Status Lock() const { return LockRange(data_, mapped_bytes_); }
  void Unlock() const;
  // The same of any memory. Says how much the system would allow.
  static absl::Status LockRange(const void* data, uint64_t bytes);
  static void UnlockRange(const void* data, uint64_t bytes);
  // All of them or, with an error, none.
  static absl::Status LockRanges(const std::vector<absl::Span<const std::byte>>& ranges);
  // Gives the pages that lie wholly in [begin, end) back to the system. Mapped ones are read anew
  // when they are touched; those of a copy are zeros then.
  void Release(uint64_t begin, uint64_t end) const;

 private:
  FileMemory(std::byte* data, uint64_t bytes, uint64_t mapped_bytes)
      : data_(data), bytes_(bytes), mapped_bytes_(mapped_bytes) {}
  static absl::StatusOr<FileMemory> Allocate(uint64_t bytes);

  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t mapped_bytes_ = 0;
  FileStamp stamp_;
};

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_FILE_MEMORY_H_
