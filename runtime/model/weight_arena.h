// Anonymous, page-aligned memory for weights that several devices read: what drivers import that
// refuse mapped files.
#ifndef TRINE_RUNTIME_MODEL_WEIGHT_ARENA_H_
#define TRINE_RUNTIME_MODEL_WEIGHT_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/tensor_info.h"
#include "runtime/model/import_windows.h"

namespace trine {

class WeightArena {
 public:
  // Room for the tensors, each at a multiple of `tensor_alignment`; a tensor given twice has one.
  // The whole begins at a multiple of `alignment`, and is one; both are powers of two. It takes
  // memory as it is filled, or at once when a driver imports it that pins what it imports.
  static absl::StatusOr<std::unique_ptr<WeightArena>> Reserve(
      const std::vector<const gguf::TensorInfo*>& tensors, uint64_t tensor_alignment,
      uint64_t alignment);
  ~WeightArena();
  WeightArena(const WeightArena&) = delete;
  WeightArena& operator=(const WeightArena&) = delete;

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

  // Of a tensor that it holds.
  ByteRange RangeOf(const gguf::TensorInfo* tensor) const { return ranges_.at(tensor); }
  // Puts bytes [begin, end) of the file's there. Other bytes from other threads at the same time.
  void Fill(const gguf::TensorInfo* tensor, uint64_t begin, uint64_t end);

 private:
  WeightArena() = default;

  void* mapped_ = nullptr;
  uint64_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  std::map<const gguf::TensorInfo*, ByteRange> ranges_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_WEIGHT_ARENA_H_
