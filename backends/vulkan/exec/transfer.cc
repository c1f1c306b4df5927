#include "backends/vulkan/exec/transfer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/vulkan/exec/recorder.h"

namespace trine::vulkan {
namespace {

absl::Status CheckPart(const Allocation& allocation, uint64_t offset, uint64_t bytes) {
  if (offset <= allocation.bytes() && bytes <= allocation.bytes() - offset) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(bytes, " bytes at ", offset,
                                                 " reach beyond an allocation of ",
                                                 allocation.bytes(), " bytes"));
}

}  // namespace

absl::Status Transfer::Write(const Allocation& to, uint64_t offset, const void* from,
                             uint64_t bytes) {
  if (absl::Status status = device_.Health(); !status.ok()) return status;
  if (absl::Status status = CheckPart(to, offset, bytes); !status.ok()) return status;
  if (bytes == 0) return absl::OkStatus();
  if (to.host() == nullptr) return WriteStaged(to.range().Part(offset, bytes), from);
  std::memcpy(to.host() + offset, from, bytes);
  return absl::OkStatus();
}

absl::Status Transfer::Read(const Allocation& from, uint64_t offset, void* to, uint64_t bytes) {
  if (absl::Status status = device_.Health(); !status.ok()) return status;
  if (absl::Status status = CheckPart(from, offset, bytes); !status.ok()) return status;
  if (bytes == 0) return absl::OkStatus();
  // The device reads uncached memory faster than the host does.
  if (from.host() == nullptr || (!from.host_cached() && bytes > 4096)) {
    return ReadStaged(from.range().Part(offset, bytes), to);
  }
  std::memcpy(to, from.host() + offset, bytes);
  return absl::OkStatus();
}

absl::Status Transfer::CopyAndWait(const BufferRange& from, const BufferRange& to) {
  Recorder recorder(device_, pipelines_, tuning_);
  recorder.Copy(from, to).IgnoreError();  // Finish returns the same status
  const auto recording = recorder.Finish();
  if (!recording.ok()) return recording.status();
  const auto point = queue_.Submit(**recording);
  if (!point.ok()) return point.status();
  absl::Status status = queue_.Wait(*point, timeout_ns_);
  if (status.ok() || absl::IsUnavailable(status)) return status;
  // A recording in flight can't be destroyed, so a device that does not answer is abandoned.
  return device_.Abandon(std::string(status.message()));
}

absl::StatusOr<Transfer::Staging> Transfer::Take(uint64_t bytes, MemoryUse use) {
  // Rounds to few sizes, so that later calls can reuse the buffers.
  constexpr uint64_t kLeastBytes = uint64_t{256} << 10;
  const uint64_t wanted = std::bit_ceil(std::clamp(bytes, kLeastBytes, kStagingBytes));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto fits = std::find_if(kept_.begin(), kept_.end(), [&](const Staging& s) {
      return s.use == use && s.memory.bytes() == wanted;
    });
    if (fits != kept_.end()) {
      Staging staging = std::move(*fits);
      kept_.erase(fits);
      kept_bytes_ -= wanted;
      return staging;
    }
  }
  auto memory = memory_.Allocate(wanted, use);
  if (absl::IsResourceExhausted(memory.status())) {
    Release();
    memory = memory_.Allocate(wanted, use);
  }
  if (!memory.ok()) return memory.status();
  return Staging{use, *std::move(memory)};
}

void Transfer::Release() {
  std::vector<Staging> given_up;  // destroyed after the lock is released
  const std::lock_guard<std::mutex> lock(mutex_);
  given_up.swap(kept_);
  kept_bytes_ = 0;
}

void Transfer::Keep(Staging staging) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (kept_bytes_ + staging.memory.bytes() > kKeptBytes) return;
  kept_bytes_ += staging.memory.bytes();
  kept_.push_back(std::move(staging));
}

absl::Status Transfer::WriteStaged(const BufferRange& to, const void* from) {
  auto staging = Take(to.bytes, MemoryUse::kUpload);
  if (!staging.ok()) return staging.status();
  const Allocation& memory = staging->memory;
  for (uint64_t done = 0; done < to.bytes;) {
    const uint64_t n = std::min(to.bytes - done, memory.bytes());
    std::memcpy(memory.host(), static_cast<const std::byte*>(from) + done, n);
    absl::Status status = CopyAndWait(memory.range().Part(0, n), to.Part(done, n));
    if (!status.ok()) return status;
    done += n;
  }
  Keep(*std::move(staging));
  return absl::OkStatus();
}

absl::Status Transfer::ReadStaged(const BufferRange& from, void* to) {
  auto staging = Take(from.bytes, MemoryUse::kReadback);
  if (!staging.ok()) return staging.status();
  const Allocation& memory = staging->memory;
  for (uint64_t done = 0; done < from.bytes;) {
    const uint64_t n = std::min(from.bytes - done, memory.bytes());
    absl::Status status = CopyAndWait(from.Part(done, n), memory.range().Part(0, n));
    if (!status.ok()) return status;
    std::memcpy(static_cast<std::byte*>(to) + done, memory.host(), n);
    done += n;
  }
  Keep(*std::move(staging));
  return absl::OkStatus();
}

}  // namespace trine::vulkan
