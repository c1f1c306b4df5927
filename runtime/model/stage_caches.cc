#include "runtime/model/stage_caches.h"

#include <algorithm>

#include "absl/status/status.h"

namespace trine {

void StageCaches::Share(const Device& home, const Device& other) {
  constexpr uint64_t kPage = 4096;
  import_alignment_ =
      std::max<uint64_t>({kPage, home.info().import_alignment, other.info().import_alignment});
}

absl::StatusOr<Buffer> StageCaches::Import(const std::shared_ptr<Device>& device, size_t number,
                                           uint64_t bytes) {
  trine_import_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.memory = TRINE_MEMORY_STATE;
  desc.bytes = (bytes + import_alignment_ - 1) / import_alignment_ * import_alignment_;
  auto& memory = memory_[number];
  if (memory == nullptr) memory.reset(std::aligned_alloc(import_alignment_, desc.bytes));
  if (memory == nullptr) return absl::ResourceExhaustedError("there is no memory for the KV cache");
  desc.host_ptr = memory.get();
  return Buffer::Import(device, desc);
}

absl::StatusOr<trine_span> StageCaches::Of(const std::shared_ptr<Device>& device, size_t number,
                                           uint64_t bytes) {
  const auto found = buffers_.find({device.get(), number});
  if (found != buffers_.end()) return found->second.Span(0, bytes);
  auto buffer = shared() ? Import(device, number, bytes)
                         : Buffer::Allocate(device, bytes, TRINE_MEMORY_STATE);
  if (!buffer.ok() && shared() && buffers_.empty() && !absl::IsUnavailable(buffer.status())) {
    // It can do without the other one.
    import_alignment_ = 0;
    memory_.clear();
    buffer = Buffer::Allocate(device, bytes, TRINE_MEMORY_STATE);
  }
  if (!buffer.ok()) return buffer.status();
  const bool first = std::none_of(buffers_.begin(), buffers_.end(),
                                  [&](const auto& entry) { return entry.first.second == number; });
  if (first) bytes_ += bytes;
  return buffers_.emplace(std::pair(device.get(), number), *std::move(buffer))
      .first->second.Span(0, bytes);
}

}  // namespace trine
