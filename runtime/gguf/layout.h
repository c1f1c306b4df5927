// How the contents of a Builder are laid out in one file or several.
#ifndef TRINE_RUNTIME_GGUF_LAYOUT_H_
#define TRINE_RUNTIME_GGUF_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/builder.h"

namespace trine::gguf {

struct PartLayout {
  std::string header;       // everything before the tensor data, padding included
  size_t first_tensor = 0;  // tensors [first, last) of the builder
  size_t last_tensor = 0;
};

struct Layout {
  uint32_t alignment = 0;
  std::vector<PartLayout> parts;

  // Zeros that follow a tensor of `bytes`.
  uint64_t PaddingAfter(uint64_t bytes) const {
    return (alignment - bytes % alignment) % alignment;
  }
};

// A part takes tensors while their data stays within `max_part_bytes`, at least one; 0 means one
// part for all.
absl::StatusOr<Layout> LayOut(const Builder& builder, uint32_t version, uint64_t max_part_bytes);

// What all parts take on disk, headers and padding included; the most there is when that does not
// fit in 64 bits.
uint64_t TotalBytes(const Builder& builder, const Layout& layout);

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_LAYOUT_H_
