// A place in a file's bytes from which numbers and strings are taken, each checked against the end.
#ifndef TRINE_RUNTIME_GGUF_CURSOR_H_
#define TRINE_RUNTIME_GGUF_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace trine::gguf {

class Cursor {
 public:
  // Borrows the bytes.
  Cursor(const std::byte* data, uint64_t bytes) : data_(data), bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_ - position_; }

  // False, and nothing taken, when too few bytes are left.
  template <class T>
  bool Read(T* value) {
    static_assert(std::is_arithmetic_v<T>);
    if (remaining() < sizeof(T)) return false;
    std::memcpy(value, data_ + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }

  bool Skip(uint64_t bytes) {
    if (remaining() < bytes) return false;
    position_ += bytes;
    return true;
  }

  // A 64-bit length and that many bytes.
  bool ReadString(std::string_view* text) {
    uint64_t length = 0;
    const uint64_t start = position_;
    if (!Read(&length) || length > remaining()) {
      position_ = start;
      return false;
    }
    *text = std::string_view(reinterpret_cast<const char*>(data_ + position_), length);
    position_ += length;
    return true;
  }

  // What to say when Read failed.
  absl::Status Ends(absl::string_view inside) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "the file ends inside ", inside, ", which starts at byte ", position_, " of ", bytes_));
  }

 private:
  const std::byte* data_;
  uint64_t bytes_;
  uint64_t position_ = 0;
};

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_CURSOR_H_
