// Holds the packed weights of a model, and chooses their layouts. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "plugins/handles.h"
#include "runtime/gguf/file_memory.h"
#include "runtime/gguf/part_reader.h"
#include "runtime/model/arch/segment_graph.h"

namespace trine {

// A weight in a device's own layout. A weight without memory has only the first three members.
struct PackedWeight {
  std::shared_ptr<Device> device;
  const gguf::TensorInfo* tensor;
  PackedLayout layout;
  trine_span span{};                   // aligned as the device wants it
  const Buffer* buffer = nullptr;      // the span's buffer; null: it is in the cache
  const std::byte* visible = nullptr;  // the CPU's view; null: none
  uint64_t source_hash = 0;            // HashRows of the plain tensor, if asked for
  uint64_t checksum = 0;               // HashRows of the groups, if asked for

  // Returns the CPU's view of a weight with a buffer; null: the CPU does not see it.
  std::byte* writable() const;
  absl::Status Write(uint64_t offset, const void* data, uint64_t bytes) const {
    return buffer->Write(span.offset + offset, data, bytes);
  }
  absl::Status Read(uint64_t offset, void* data, uint64_t bytes) const {
    return buffer->Read(span.offset + offset, data, bytes);
  }
};

// The packed weights of all devices. All segments of a device use the same copy of a weight. Keeps
// the memory alive.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  // Returns the existing weight, or a new one without memory.
  PackedWeight* Add(const std::shared_ptr<Device>& device, const gguf::TensorInfo* tensor,
                    const PackedLayout& layout);
  // Returns null if the layout was not added.
  const PackedWeight* Find(const Device* device, const gguf::TensorInfo* tensor,
                           uint64_t layout) const;
  std::deque<PackedWeight>& items() { return items_; }  // deque: their addresses stay
  const std::deque<PackedWeight>& items() const { return items_; }
  // Returns whether some device has the tensor packed.
  bool Holds(const gguf::TensorInfo* tensor) const;
  void Clear();
  bool empty() const { return items_.empty(); }
  uint64_t bytes() const;

  // Allocates memory for each weight that has none. Small weights of a device share a buffer, so
  // that they can be in large pages, and a driver has fewer allocations to keep.
  absl::Status Allocate();
  // Returns the memory of all weights that the CPU sees.
  std::vector<absl::Span<const std::byte>> Visible() const;
  // Takes ownership of the memory that spans of some weights refer to: a mapped cache, and its
  // imports.
  void Keep(gguf::FileMemory memory, std::deque<Buffer> imports);

 private:
  absl::Status AllocateTogether(absl::Span<PackedWeight* const> weights);

  // declared before the buffers, which are imported from it
  std::unique_ptr<gguf::FileMemory> cache_;
  std::deque<Buffer> imports_;
  std::deque<Buffer> buffers_;  // deque: their addresses stay
  std::deque<PackedWeight> items_;
};

// Gives each matrix of a segment the device's best layout among the exact layouts that all ops that
// read the matrix accept. A matrix stays plain if there is no such layout, or if ops only pick rows
// of it. Several tensors of the graph may stand for one weight (a tied embedding): all of them get
// one layout or, if that is impossible, only the multiplied tensors do. Calls `warn` if a device
// breaks the rules for layouts.
void ChooseLayouts(const Device& device, SegmentGraph* segment,
                   const std::function<void(const std::string&)>& warn);

// Makes all weights plain again, or those for which `which` says so.
void ClearLayouts(SegmentGraph* segment,
                  const std::function<bool(const WeightUse&)>& which = nullptr);

}  // namespace trine
