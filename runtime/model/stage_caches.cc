#include "runtime/model/stage_caches.h"

#include <algorithm>
#include <vector>

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
      if (!buffer.ok()) continue;
      const auto made = buffers_.emplace(std::pair(device.get(), number), *std::move(buffer));
      caches_[number] = {&made.first->second, bytes};
    }
    bytes_ += bytes;
  }
  if (status.ok()) return status;
  caches_.clear();
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
  const auto made = buffers_.emplace(std::pair(device.get(), number), *std::move(buffer));
  caches_[number] = {&made.first->second, bytes};
  return made.first->second.Span(0, bytes);
}

absl::Status StageCaches::ReadBlock(int64_t n_blocks, int32_t block, std::byte* to) const {
  for (const auto& [number, cache] : caches_) {
    const uint64_t bytes = cache.bytes / static_cast<uint64_t>(n_blocks);
    const uint64_t offset = static_cast<uint64_t>(block) * bytes;
    if (absl::Status s = cache.buffer->Read(offset, to, bytes); !s.ok()) return s;
    to += bytes;
  }
  return absl::OkStatus();
}

absl::Status StageCaches::WriteBlock(int64_t n_blocks, int32_t block, const std::byte* from) const {
  for (const auto& [number, cache] : caches_) {
    const uint64_t bytes = cache.bytes / static_cast<uint64_t>(n_blocks);
    const uint64_t offset = static_cast<uint64_t>(block) * bytes;
    if (absl::Status s = cache.buffer->Write(offset, from, bytes); !s.ok()) return s;
    from += bytes;
  }
  return absl::OkStatus();
}

absl::Status StageCaches::CopyBlock(int64_t n_blocks, int32_t from, int32_t to) const {
  std::vector<std::byte> between;
  for (const auto& [number, cache] : caches_) {
    const uint64_t bytes = cache.bytes / static_cast<uint64_t>(n_blocks);
    const uint64_t source = static_cast<uint64_t>(from) * bytes;
    const uint64_t target = static_cast<uint64_t>(to) * bytes;
    // Where the host sees the memory it writes from there.
    if (const auto* seen = static_cast<const std::byte*>(cache.buffer->host_ptr())) {
      if (absl::Status s = cache.buffer->Write(target, seen + source, bytes); !s.ok()) return s;
      continue;
    }
    between.resize(bytes);
    absl::Status status = cache.buffer->Read(source, between.data(), bytes);
    if (status.ok()) status = cache.buffer->Write(target, between.data(), bytes);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace trine
