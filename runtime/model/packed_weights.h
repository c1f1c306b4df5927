// The weights that lie in a layout of a device's own: one copy for all segments of the device that
// use it. Keeps the memory alive. Not thread-safe.
#ifndef TRINE_RUNTIME_MODEL_PACKED_WEIGHTS_H_
#define TRINE_RUNTIME_MODEL_PACKED_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "plugins/handles.h"
#include "runtime/gguf/file_memory.h"
#include "runtime/gguf/tensor_info.h"

namespace trine {

struct PackedWeight {
  std::shared_ptr<Device> device;
  const gguf::TensorInfo* tensor;
  PackedLayout layout;
  trine_span span{};                   // where it lies; aligned as the device wants it
  const Buffer* buffer = nullptr;      // that of the span; none where it lies in the cache
  const std::byte* visible = nullptr;  // where the CPU sees it, if it does
  uint64_t source_hash = 0;            // HashRows of the plain tensor, where asked for
  uint64_t checksum = 0;               // HashRows of the groups, likewise

  // Of weights with a buffer. Null: the CPU does not see it.
  std::byte* writable() const;
  absl::Status Write(uint64_t offset, const void* data, uint64_t bytes) const {
    return buffer->Write(span.offset + offset, data, bytes);
  }
  absl::Status Read(uint64_t offset, void* data, uint64_t bytes) const {
    return buffer->Read(span.offset + offset, data, bytes);
  }
};

class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  // The one there is already, or a new one without memory.
  PackedWeight* Add(const std::shared_ptr<Device>& device, const gguf::TensorInfo* tensor,
                    const PackedLayout& layout);
  // Null when the layout was not added.
  const PackedWeight* Find(const Device* device, const gguf::TensorInfo* tensor,
                           uint64_t layout) const;
  std::deque<PackedWeight>& items() { return items_; }  // deque: their addresses stay
  const std::deque<PackedWeight>& items() const { return items_; }
  // Whether some device has the tensor packed.
  bool Holds(const gguf::TensorInfo* tensor) const;
  void Clear();
  bool empty() const { return items_.empty(); }
  uint64_t bytes() const;

  // Memory for each weight that has none. Small ones of a device lie in one buffer, so that they
  // can be in large pages, and a driver has fewer allocations to keep.
  absl::Status Allocate();
  // What the CPU sees of it.
  std::vector<absl::Span<const std::byte>> Visible() const;
  // Takes over the memory the spans of some weights lie in: a mapped cache, and its imports.
  void Keep(gguf::FileMemory memory, std::deque<Buffer> imports);

 private:
  absl::Status AllocateTogether(absl::Span<PackedWeight* const> weights);

  std::unique_ptr<gguf::FileMemory> cache_;  // outlives what is imported from it
  std::deque<Buffer> imports_;
  std::deque<Buffer> buffers_;  // deque: their addresses stay
  std::deque<PackedWeight> items_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_PACKED_WEIGHTS_H_
