// A GGUF file that is open for reading: its metadata and tensors. A split file is opened with all
// its parts. Every offset, size and count is checked against the file. Views into the file are
// valid as long as the File exists. Immutable, so any thread may read.
#pragma once

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

namespace trine::gguf {

// The memory of one file on disk. It is read-only and page-aligned, and can be read up to
// `mapped_bytes`, a multiple of the page size.
struct Part {
  std::string path;
  const std::byte* data = nullptr;
  uint64_t file_bytes = 0;
  uint64_t mapped_bytes = 0;
  FileStamp stamp;
};

struct OpenOptions {
  // true: the file is mapped; false: it is read into memory. A mapped file must not change while it
  // is open: if another process truncates it, touching the missing part raises SIGBUS, and if a
  // process overwrites it in place, the weights change. Renaming a new file over it is safe.
  bool use_mmap = true;
};

class File {
 public:
  // Opens a file. `path` is a whole file, or any part (NAME-00002-of-00005.gguf) of a split file.
  // Errors begin with the path of the part that they are about.
  static absl::StatusOr<std::shared_ptr<const File>> Open(const std::string& path,
                                                          const OpenOptions& options = {});
  // Reads a copy of `bytes` as a file, which must not be split. `name` stands for the path in
  // messages.
  static absl::StatusOr<std::shared_ptr<const File>> FromMemory(absl::Span<const std::byte> bytes,
                                                                std::string name = "model");
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Returns the metadata. A split file has the metadata of its first part.
  const Metadata& metadata() const { return metadata_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* FindTensor(std::string_view name) const;  // null: there is no such tensor
  const std::vector<Part>& parts() const { return parts_; }
  bool mapped() const { return mapped_; }                  // false: the file was read into memory
  uint32_t version() const { return version_; }            // the format's version: 2 or 3
  uint64_t tensor_bytes() const { return tensor_bytes_; }  // the sum of all tensors' bytes

  // Keeps the file's memory from being swapped out. An error says how much the system allows.
  absl::Status Lock() const;

  // Gives the pages that lie wholly within bytes [begin, end) of a tensor back to the system. The
  // caller has no more use for these bytes. If such a page is read again, a mapped file reads it
  // from the disk; in a file that was read into memory it reads as zeros. Any thread may call it.
  void Release(const TensorInfo& tensor, uint64_t begin, uint64_t end) const;

 private:
  File();

  absl::Status LoadParts(const std::string& path, bool use_mmap);
  absl::Status AddPart(std::string path, FileMemory memory, PartContents contents);
  absl::Status AddTensors(std::vector<TensorInfo> tensors);

  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::vector<Part> parts_;
  std::vector<FileMemory> memory_;  // owns the memory of parts_, in the same order
  absl::flat_hash_map<absl::string_view, uint32_t> tensor_index_;
  bool mapped_ = false;
  uint32_t version_ = 0;
  uint64_t tensor_bytes_ = 0;
};

}  // namespace trine::gguf
