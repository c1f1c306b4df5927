// A tensor of a GGUF file: what it is and where its data lies. A view: the file owns both.
#ifndef TRINE_RUNTIME_GGUF_TENSOR_INFO_H_
#define TRINE_RUNTIME_GGUF_TENSOR_INFO_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/quant/block_types.h"

namespace trine::gguf {

struct TensorInfo {
  std::string_view name;
  quant::Type type = quant::Type::kF32;
  uint32_t rank = 1;
  int64_t dims[4] = {1, 1, 1, 1};  // innermost first
  size_t part = 0;                 // index into File::parts
  uint64_t offset = 0;             // from the start of that part's memory
  uint64_t bytes = 0;
  const std::byte* data = nullptr;

  int64_t Rows() const { return dims[1] * dims[2] * dims[3]; }
};

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_TENSOR_INFO_H_
