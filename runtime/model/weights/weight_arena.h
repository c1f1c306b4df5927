// Holds weights in memory that drivers can import, for devices whose drivers refuse mapped files.
// Also computes which windows of a memory a device has to import to see some ranges of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/gguf/part_reader.h"

namespace trine {

struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool Holds(const ByteRange& other) const { return begin <= other.begin && other.end <= end; }
  bool operator==(const ByteRange&) const = default;
};

// Returns as few windows as possible such that each range is within one window, in order. Windows
// begin and end at multiples of `alignment`, but not beyond `memory_bytes`. A window has at most
// `max_bytes` bytes (0: no limit) unless a single range has more, and contains no large gap between
// ranges. Neighbouring windows may share a page.
std::vector<ByteRange> ImportWindows(std::vector<ByteRange> ranges, uint64_t alignment,
                                     uint64_t max_bytes, uint64_t memory_bytes);

// Anonymous memory that is filled with weights from the file.
class WeightArena {
 public:
  // Reserves room for the tensors, each at a multiple of `tensor_alignment`; a tensor that is given
  // twice gets room once. The arena's address and size are multiples of `alignment`. Both
  // alignments are powers of two. The arena takes memory when it is filled, or earlier if a driver
  // imports it and pins its imports.
  static absl::StatusOr<std::unique_ptr<WeightArena>> Reserve(
      const std::vector<const gguf::TensorInfo*>& tensors, uint64_t tensor_alignment,
      uint64_t alignment);
  ~WeightArena();
  WeightArena(const WeightArena&) = delete;
  WeightArena& operator=(const WeightArena&) = delete;

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

  // REQUIRES: the arena holds the tensor.
  ByteRange RangeOf(const gguf::TensorInfo* tensor) const { return ranges_.at(tensor); }
  // Copies bytes [begin, end) of the tensor from the file. Threads may fill different bytes at the
  // same time.
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
