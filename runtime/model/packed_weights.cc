#include "runtime/model/packed_weights.h"

#include <algorithm>
#include <utility>

namespace trine {
namespace {

// A buffer of less is not put in large pages (sdk::HostMemory).
constexpr uint64_t kSmall = uint64_t{4} << 20;
constexpr uint64_t kSharedBytes = uint64_t{64} << 20;

uint64_t BytesOf(const PackedWeight& weight) { return weight.layout.packed_bytes(); }

bool IsSmall(const PackedWeight& weight) { return BytesOf(weight) < kSmall; }

// Where the weight begins in a buffer that is used up to there.
uint64_t Aligned(const PackedWeight& weight, uint64_t end) {
  const uint64_t alignment = std::max<uint64_t>(weight.device->info().buffer_alignment, 64);
  return (end + alignment - 1) / alignment * alignment;
}

// How many of them, from the first on, lie in one buffer.
size_t ShareABuffer(absl::Span<PackedWeight* const> weights) {
  const PackedWeight& first = *weights[0];
  if (!IsSmall(first)) return 1;
  const uint64_t largest = first.device->info().max_allocation_bytes;
  const uint64_t most = largest == 0 ? kSharedBytes : std::min(largest, kSharedBytes);
  uint64_t end = BytesOf(first);
  size_t n = 1;
  for (; n < weights.size(); ++n) {
    const PackedWeight& next = *weights[n];
    if (next.device != first.device) break;
    end = Aligned(next, end) + BytesOf(next);
    if (end > most) break;
  }
  return n;
}

}  // namespace

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

std::byte* PackedWeight::writable() const {
  auto* const data = static_cast<std::byte*>(buffer->host_ptr());
  return data == nullptr ? nullptr : data + span.offset;
}

void PackedWeights::Clear() {
  items_.clear();
  buffers_.clear();
}

absl::Status PackedWeights::Allocate() {
  std::vector<PackedWeight*> left;
  for (PackedWeight& item : items_) {
    if (item.span.buffer == nullptr) left.push_back(&item);
  }
  // A device's small ones next to each other, in the order in which they are read.
  std::stable_sort(left.begin(), left.end(), [](const PackedWeight* a, const PackedWeight* b) {
    return std::pair(a->device.get(), IsSmall(*a)) < std::pair(b->device.get(), IsSmall(*b));
  });
  for (size_t i = 0; i < left.size();) {
    const size_t n = ShareABuffer(absl::MakeConstSpan(left).subspan(i));
    if (absl::Status s = AllocateTogether(absl::MakeConstSpan(left).subspan(i, n)); !s.ok()) {
      return s;
    }
    i += n;
  }
  return absl::OkStatus();
}

absl::Status PackedWeights::AllocateTogether(absl::Span<PackedWeight* const> weights) {
  uint64_t bytes = 0;
  for (const PackedWeight* weight : weights) bytes = Aligned(*weight, bytes) + BytesOf(*weight);
  auto allocated = Buffer::Allocate(weights[0]->device, bytes, TRINE_MEMORY_WEIGHTS);
  if (!allocated.ok()) return allocated.status();
  const Buffer& buffer = buffers_.emplace_back(*std::move(allocated));
  uint64_t end = 0;
  for (PackedWeight* weight : weights) {
    const uint64_t begin = Aligned(*weight, end);
    end = begin + BytesOf(*weight);
    weight->buffer = &buffer;
    weight->span = buffer.Span(begin, BytesOf(*weight));
    weight->visible = weight->writable();
  }
  return absl::OkStatus();
}

void PackedWeights::Keep(gguf::FileMemory memory, std::deque<Buffer> imports) {
  cache_ = std::make_unique<gguf::FileMemory>(std::move(memory));
  imports_ = std::move(imports);
}

}  // namespace trine
