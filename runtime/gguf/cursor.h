// Reads numbers and strings from a file's bytes and writes them. Every read is checked against the
// end of the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/invalid.h"

namespace trine::gguf {

class Cursor {
 public:
  // The bytes must outlive the cursor.
  Cursor(const std::byte* data, uint64_t bytes) : data_(data), bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_ - position_; }

  // Reads a number. Returns false and reads nothing if too few bytes are left; this also holds for
  // the following functions.
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

  bool ReadBytes(uint64_t bytes, std::string_view* text) {
    if (remaining() < bytes) return false;
    *text = std::string_view(reinterpret_cast<const char*>(data_ + position_), bytes);
    return Skip(bytes);
  }

  // Reads a length and that many bytes, at most `most`. GGUF files have lengths of 64 bits.
  template <class Length = uint64_t>
  bool ReadString(std::string_view* text, Length most = std::numeric_limits<Length>::max()) {
    Length length = 0;
    const uint64_t start = position_;
    if (Read(&length) && length <= most && ReadBytes(length, text)) return true;
    position_ = start;
    return false;
  }

  // Returns the error for a read of `inside` that failed.
  absl::Status Ends(absl::string_view inside) const {
    return Invalid("the file ends inside ", inside, ", which starts at byte ", position_, " of ",
                   bytes_);
  }

 private:
  const std::byte* data_;
  uint64_t bytes_;
  uint64_t position_ = 0;
};

// Collects the bytes of a file in one of Trine's own formats.
class ByteWriter {
 public:
  template <class T>
  ByteWriter& Number(T value) {
    return Bytes(&value, sizeof(value));
  }
  // Adds a 32-bit length and the text.
  ByteWriter& Text(std::string_view text) {
    return Number(static_cast<uint32_t>(text.size())).Bytes(text.data(), text.size());
  }
  ByteWriter& Bytes(const void* data, size_t n) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), from, from + n);
    return *this;
  }
  std::vector<std::byte> bytes;
};

}  // namespace trine::gguf
