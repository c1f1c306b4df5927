#include "runtime/model/stage_caches.h"

#include <algorithm>

#include "absl/status/status.h"

namespace trine {

absl::Status StageCaches::Share(const std::shared_ptr<Device>& home,
                                const std::shared_ptr<Device>& other,
                                const std::map<size_t, uint64_t>& sizes) {
  constexpr uint64_t kPage = 4096;
  const uint64_t grain =
      std::max<uint64_t>({kPage, home->info().import_alignment, other->info().import_alignment});
  absl::Status status;
  for (const auto& [number, bytes] : sizes) {
    const uint64_t whole = (bytes + grain - 1) / grain * grain;
    LentMemory& memory = memory_.try_emplace(number, grain, whole).first->second;
    if (memory.data() == nullptr) status = absl::ResourceExhaustedError("there is no memory");
    for (const std::shared_ptr<Device>& device : {home, other}) {
      if (!status.ok()) break;
      auto buffer = memory.LendTo(device, whole, TRINE_MEMORY_STATE);
      status = buffer.status();
      if (buffer.ok()) buffers_.emplace(std::pair(device.get(), number), *std::move(buffer));
    }
    bytes_ += bytes;
  }
  if (status.ok()) return status;
  buffers_.clear();
  memory_.clear();
  bytes_ = 0;
  return status;
}

const Buffer* StageCaches::Find(const Device& device, size_t number) const {
  const auto found = buffers_.find({&device, number});
  return found == buffers_.end() ? nullptr : &found->second;
}

absl::StatusOr<trine_span> StageCaches::Of(const std::shared_ptr<Device>& device, size_t number,
                                           uint64_t bytes) {
  const auto found = buffers_.find({device.get(), number});
  if (found != buffers_.end()) return found->second.Span(0, bytes);
  auto buffer = Buffer::Allocate(device, bytes, TRINE_MEMORY_STATE);
  if (!buffer.ok()) return buffer.status();
  bytes_ += bytes;
  return buffers_.emplace(std::pair(device.get(), number), *std::move(buffer))
      .first->second.Span(0, bytes);
}

}  // namespace trine
