// Writes a GGUF file, or a split one, tensor data streamed. Files appear under their names only
// when they are complete: until Finish they are temporary files beside them, removed when the
// writer goes before that. One thread at a time.
#ifndef TRINE_RUNTIME_GGUF_WRITER_H_
#define TRINE_RUNTIME_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/gguf/builder.h"
#include "runtime/gguf/layout.h"

namespace trine::gguf {

class OutputFile;

struct WriterOptions {
  uint32_t version = 3;
  // The most tensor data in one file. When it takes several, `NAME.gguf` becomes
  // `NAME-00001-of-0000N.gguf` and so on. 0 writes one file.
  uint64_t max_part_bytes = 0;
};

class Writer {
 public:
  // RESOURCE_EXHAUSTED where the disk has no room for all of it.
  static absl::StatusOr<std::unique_ptr<Writer>> Create(const std::string& path, Builder builder,
                                                        const WriterOptions& options = {});
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // The next bytes of tensor data, in the order the tensors were added; in pieces of any size,
  // which may span tensors. Padding is the writer's affair.
  absl::Status Write(absl::Span<const std::byte> data);

  // All data has come: the files get their names, the first part last, so that a split file whose
  // writing was cut off is never taken for a whole one.
  absl::Status Finish();

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  Writer(Builder builder, Layout layout, std::vector<std::string> paths);

  absl::Status Append(absl::Span<const std::byte> data);
  // Closes a part whose tensors are written, and opens the next.
  absl::Status Advance();
  absl::Status Publish();

  const Builder builder_;
  const Layout layout_;
  const std::vector<std::string> paths_;
  absl::Status status_;  // the first error: what comes after it is not written
  std::vector<std::unique_ptr<OutputFile>> files_;  // opened so far, one per part
  size_t tensor_ = 0;                               // being written
  uint64_t tensor_bytes_ = 0;                       // written of it
};

// A whole file in memory. `data` has one entry for each of the builder's tensors.
absl::StatusOr<std::vector<std::byte>> ToBytes(const Builder& builder,
                                               absl::Span<const absl::Span<const std::byte>> data,
                                               uint32_t version = 3);

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_WRITER_H_
