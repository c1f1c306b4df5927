// Writes a GGUF file, split or not, while the tensors' data comes in pieces. Files get their names
// only when they are complete: until Finish they are temporary files in the same folder, which the
// destructor removes. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/gguf/builder.h"

namespace trine::gguf {

// The part of a Builder's contents that goes into one file.
struct PartLayout {
  std::string header;       // everything before the tensor data, padding included
  size_t first_tensor = 0;  // tensors [first, last) of the builder
  size_t last_tensor = 0;
};

// Says which part of a Builder's contents goes into which file.
struct Layout {
  uint32_t alignment = 0;
  std::vector<PartLayout> parts;

  // Returns the number of zeros after a tensor of `bytes`.
  uint64_t PaddingAfter(uint64_t bytes) const {
    return (alignment - bytes % alignment) % alignment;
  }
};

// Divides the tensors into parts of up to `max_part_bytes` of data, but of at least one tensor. 0
// makes one part of all tensors.
absl::StatusOr<Layout> LayOut(const Builder& builder, uint32_t version, uint64_t max_part_bytes);

// Returns the bytes of all parts on disk, headers and padding included, or the largest number if
// that does not fit in 64 bits.
uint64_t TotalBytes(const Builder& builder, const Layout& layout);

class OutputFile;

struct WriterOptions {
  uint32_t version = 3;
  // The most bytes of tensor data in one file; 0: no limit. If several files are needed, NAME.gguf
  // becomes NAME-00001-of-0000N.gguf and so on.
  uint64_t max_part_bytes = 0;
};

class Writer {
 public:
  // Begins to write. Returns RESOURCE_EXHAUSTED if the disk has no room for all files.
  static absl::StatusOr<std::unique_ptr<Writer>> Create(const std::string& path, Builder builder,
                                                        const WriterOptions& options = {});
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Writes the next bytes of tensor data, in the order in which the tensors were added. Pieces may
  // have any size and may span tensors. The writer adds the padding.
  absl::Status Write(absl::Span<const std::byte> data);

  // Publishes the files after all data has been written. The first part gets its name last, so that
  // a split file whose writing was interrupted never looks complete.
  absl::Status Finish();

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  Writer(Builder builder, Layout layout, std::vector<std::string> paths);

  absl::Status Append(absl::Span<const std::byte> data);
  // Closes a part whose tensors are written and opens the next one.
  absl::Status Advance();
  absl::Status Publish();

  const Builder builder_;
  const Layout layout_;
  const std::vector<std::string> paths_;
  absl::Status status_;                             // the first error; nothing is written after it
  std::vector<std::unique_ptr<OutputFile>> files_;  // the parts that have been begun
  size_t tensor_ = 0;                               // the current tensor
  uint64_t tensor_bytes_ = 0;                       // how much of the current tensor is written
};

}  // namespace trine::gguf
