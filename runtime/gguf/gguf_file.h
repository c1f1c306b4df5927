// A GGUF file (or the parts of a split one), opened for reading: metadata and tensors, every
// offset, size and count checked against the file. Views into it live as long as it does.
// Immutable once open; any thread may read.
#ifndef TRINE_RUNTIME_GGUF_GGUF_FILE_H_
#define TRINE_RUNTIME_GGUF_GGUF_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/gguf/file_memory.h"
#include "runtime/gguf/metadata.h"
#include "runtime/gguf/part_reader.h"
#include "runtime/gguf/tensor_info.h"

namespace trine::gguf {

// One file's memory: page-aligned, `mapped_bytes` a multiple of the page size and readable as a
// whole. Read-only.
struct Part {
  std::string path;
  const std::byte* data = nullptr;
  uint64_t file_bytes = 0;
  uint64_t mapped_bytes = 0;
  FileStamp stamp;
};

struct OpenOptions {
  // Else the file is read into memory. A mapped file must stay as it is while it is open: when
  // another process cuts it short, touching what is gone raises SIGBUS, and when one overwrites it
  // in place, the weights change. Replacing the file by renaming a new one over it is safe.
  bool use_mmap = true;
};

class File {
 public:
  // `path` is a file, or any part `-0000K-of-0000N.gguf` of a split one. The message of an error
  // begins with the path of the part it is about.
  static absl::StatusOr<std::shared_ptr<const File>> Open(const std::string& path,
                                                          const OpenOptions& options = {});
  // A copy of a file's bytes; not split. `name` stands for the path in messages.
  static absl::StatusOr<std::shared_ptr<const File>> FromMemory(absl::Span<const std::byte> bytes,
                                                                std::string name = "model");
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Of a split file: the first part's.
  const Metadata& metadata() const { return metadata_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* FindTensor(std::string_view name) const;  // null when there is none
  const std::vector<Part>& parts() const { return parts_; }
  bool mapped() const { return mapped_; }                  // false: read into memory
  uint32_t version() const { return version_; }            // of the format: 2 or 3
  uint64_t tensor_bytes() const { return tensor_bytes_; }  // of all tensors

  // Keeps the file's memory from being swapped out. Says how much the system would allow.
  absl::Status Lock() const;

  // Bytes [begin, end) of a tensor are not read again by their owner: whole pages of them go back
  // to the system. Of a mapped file they are read anew by who touches them after all; of one read
  // into memory they are gone, and read as zeros. From any thread.
  void Release(const TensorInfo& tensor, uint64_t begin, uint64_t end) const;

 private:
  File();

  absl::Status LoadParts(const std::string& path, bool use_mmap);
  absl::Status AddPart(std::string path, FileMemory memory, PartContents contents);
  absl::Status AddTensors(std::vector<TensorInfo> tensors);

  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::vector<Part> parts_;
  std::vector<FileMemory> memory_;  // of parts_, in their order
  absl::flat_hash_map<absl::string_view, uint32_t> tensor_index_;
  bool mapped_ = false;
  uint32_t version_ = 0;
  uint64_t tensor_bytes_ = 0;
};

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_GGUF_FILE_H_
