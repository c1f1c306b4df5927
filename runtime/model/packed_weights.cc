#include "runtime/model/packed_weights.h"

#include <algorithm>
#include <utility>

namespace trine {

PackedWeight* PackedWeights::Add(const std::shared_ptr<Device>& device,
                                 const gguf::TensorInfo* tensor, const PackedLayout& layout) {
  for (PackedWeight& item : items_) {
    if (item.device == device && item.tensor == tensor && item.layout.id() == layout.id()) {
      return &item;
    }
  }
  items_.push_back({device, tensor, layout});
  return &items_.back();
}

const PackedWeight* PackedWeights::Find(const Device* device, const gguf::TensorInfo* tensor,
                                        uint64_t layout) const {
  const auto found = std::find_if(items_.begin(), items_.end(), [&](const PackedWeight& item) {
    return item.device.get() == device && item.tensor == tensor && item.layout.id() == layout;
  });
  return found == items_.end() ? nullptr : &*found;
}

bool PackedWeights::Holds(const gguf::TensorInfo* tensor) const {
  return std::any_of(items_.begin(), items_.end(),
                     [&](const PackedWeight& item) { return item.tensor == tensor; });
}

std::vector<absl::Span<const std::byte>> PackedWeights::Visible() const {
  std::vector<absl::Span<const std::byte>> ranges;
  for (const PackedWeight& item : items_) {
    if (item.visible != nullptr) ranges.emplace_back(item.visible, item.layout.packed_bytes());
  }
  return ranges;
}

uint64_t PackedWeights::bytes() const {
  uint64_t bytes = 0;
  for (const PackedWeight& item : items_) bytes += item.layout.packed_bytes();
  return bytes;
}

absl::Status PackedWeights::Allocate() {
  for (PackedWeight& item : items_) {
    if (item.span.buffer != nullptr) continue;
    const uint64_t bytes = item.layout.packed_bytes();
    auto buffer = Buffer::Allocate(item.device, bytes, TRINE_MEMORY_WEIGHTS);
    if (!buffer.ok()) return buffer.status();
    item.buffer = *std::move(buffer);
    item.span = item.buffer.Span(0, bytes);
    item.visible = item.writable();
  }
  return absl::OkStatus();
}

void PackedWeights::Keep(gguf::FileMemory memory, std::deque<Buffer> imports) {
  cache_ = std::make_unique<gguf::FileMemory>(std::move(memory));
  imports_ = std::move(imports);
}

}  // namespace trine
