// Reads a file's key-value pairs. Every count is held against the bytes that are left before
// anything of its size is allocated.
#ifndef TRINE_RUNTIME_GGUF_METADATA_READER_H_
#define TRINE_RUNTIME_GGUF_METADATA_READER_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gguf/cursor.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/metadata.h"

namespace trine::gguf {

class MetadataReader {
 public:
  // Borrows the cursor, which stands at the first key and is left after the last value.
  explicit MetadataReader(Cursor* cursor) : cursor_(cursor) {}

  absl::StatusOr<Metadata> Read(uint64_t count);

 private:
  absl::Status ReadEntry(uint64_t index, Metadata::Entry* entry);
  absl::Status ReadScalar(ValueType type, Value* value);
  absl::Status ReadArray(int depth, Array* array);
  absl::Status ReadElements(ValueType type, int depth, Array* array);
  absl::Status ReadBool(bool* flag);

  template <class T>
  absl::Status ReadInteger(Value* value);
  template <class T, class Stored>
  void AppendAll(uint64_t count, std::vector<Stored>* out);

  // Adds where in the file's metadata an error lies.
  absl::Status Error(const std::string& message) const;
  absl::Status Ends() const;

  Cursor* cursor_;
  std::string_view key_;  // being read, for messages
  uint64_t elements_ = 0;
  uint64_t nested_arrays_ = 0;
};

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_METADATA_READER_H_
