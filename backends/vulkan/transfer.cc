#include "backends/vulkan/transfer.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "backends/vulkan/recorder.h"

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
  // What is mapped without a cache is read faster by the device.
  if (from.host() == nullptr || (!from.host_cached() && bytes > 4096)) {
    return ReadStaged(from.range().Part(offset, bytes), to);
  }
  std::memcpy(to, from.host() + offset, bytes);
  return absl::OkStatus();
}

absl::Status Transfer::CopyAndWait(const BufferRange& from, const BufferRange& to) {
  Recorder recorder(device_, pipelines_, tuning_);
  recorder.Copy(from, to).IgnoreError();  // Finish says it again
  const auto recording = recorder.Finish();
  if (!recording.ok()) return recording.status();
  const auto point = queue_.Submit(**recording);
  if (!point.ok()) return point.status();
  absl::Status status = queue_.Wait(*point, timeout_ns_);
  if (status.ok() || absl::IsUnavailable(status)) return status;
  // The recording can't be destroyed under way: a device that does not answer is given up.
  return device_.Abandon(std::string(status.message()));
}

absl::Status Transfer::WriteStaged(const BufferRange& to, const void* from) {
  auto staging = memory_.Allocate(std::min(to.bytes, kStagingBytes), MemoryUse::kUpload);
  if (!staging.ok()) return staging.status();
  for (uint64_t done = 0; done < to.bytes;) {
    const uint64_t n = std::min(to.bytes - done, staging->bytes());
    std::memcpy(staging->host(), static_cast<const std::byte*>(from) + done, n);
    absl::Status status = CopyAndWait(staging->range().Part(0, n), to.Part(done, n));
    if (!status.ok()) return status;
    done += n;
  }
  return absl::OkStatus();
}

absl::Status Transfer::ReadStaged(const BufferRange& from, void* to) {
  auto staging = memory_.Allocate(std::min(from.bytes, kStagingBytes), MemoryUse::kReadback);
  if (!staging.ok()) return staging.status();
  for (uint64_t done = 0; done < from.bytes;) {
    const uint64_t n = std::min(from.bytes - done, staging->bytes());
    absl::Status status = CopyAndWait(from.Part(done, n), staging->range().Part(0, n));
    if (!status.ok()) return status;
    std::memcpy(static_cast<std::byte*>(to) + done, staging->host(), n);
    done += n;
  }
  return absl::OkStatus();
}

}  // namespace trine::vulkan
