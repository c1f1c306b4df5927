// Holds the bytes of one file in page-aligned memory, which is a mapping of the file or a copy of
// it. Owns the memory. Any thread may call the const methods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace trine::gguf {

// Identifies the file that was opened and its version, by fstat. Stays the same if another file
// takes over the name.
struct FileStamp {
  uint64_t bytes = 0;
  uint64_t modified_ns = 0;  // since 1970
  uint64_t changed_ns = 0;   // since 1970; unlike modified_ns, no program can set it back
  uint64_t device = 0;
  uint64_t inode = 0;  // 0: the bytes were not read from a file

  bool operator==(const FileStamp&) const = default;
};

class FileMemory {
 public:
  // Maps the file read-only, shared with other processes and the system's page cache.
  static absl::StatusOr<FileMemory> Map(const std::string& path);
  // Reads the whole file into private memory.
  static absl::StatusOr<FileMemory> Read(const std::string& path);
  // Copies `bytes`, which must not be empty, into private memory. The stamp is empty.
  static absl::StatusOr<FileMemory> Copy(absl::Span<const std::byte> bytes);

  FileMemory(FileMemory&& other) noexcept;
  FileMemory& operator=(FileMemory&& other) noexcept;
  ~FileMemory();

  const std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  // Returns the size of the memory: bytes(), rounded up to whole pages. The bytes after the end of
  // the file are zero.
  uint64_t mapped_bytes() const { return mapped_bytes_; }

  const FileStamp& stamp() const { return stamp_; }

  // Keeps the memory from being swapped out. Fails like LockRange.
  absl::Status Lock() const { return LockRange(data_, mapped_bytes_); }
  void Unlock() const;
  // Keep any memory from being swapped out, and end that. LockRange fails with RESOURCE_EXHAUSTED,
  // and says how many bytes this process may lock.
  static absl::Status LockRange(const void* data, uint64_t bytes);
  static void UnlockRange(const void* data, uint64_t bytes);
  // Locks all ranges. If one fails, unlocks the others and returns the error.
  static absl::Status LockRanges(const std::vector<absl::Span<const std::byte>>& ranges);
  // Gives back to the system the pages that lie wholly within bytes [begin, end). If such a page is
  // read again, a mapped file reads it from the disk; in a copy its contents are lost, and it reads
  // as zeros.
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
