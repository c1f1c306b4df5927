// The functions of the plugin's table for memory and copies.
#include <cstring>
#include <vector>

#include "backends/vulkan/backend.h"
#include "backends/vulkan/exec/recorder.h"

namespace trine::vulkan {
namespace {

std::byte* HostOf(const trine_copy_end& end) {
  return static_cast<std::byte*>(end.host) + end.offset;
}

absl::Status CopyOne(OpenDevice& open, const trine_copy& copy) {
  if (copy.bytes == 0) return absl::OkStatus();
  if (copy.src.buffer == nullptr && copy.dst.buffer == nullptr) {
    std::memmove(HostOf(copy.dst), HostOf(copy.src), copy.bytes);
    return absl::OkStatus();
  }
  if (copy.src.buffer == nullptr) {
    return open.transfer->Write(copy.dst.buffer->memory, copy.dst.offset, HostOf(copy.src),
                                copy.bytes);
  }
  return open.transfer->Read(copy.src.buffer->memory, copy.src.offset, HostOf(copy.dst),
                             copy.bytes);
}

// Runs copies within the device as one submission, and the others on the host.
absl::Status RunNow(OpenDevice& open, const std::vector<trine_copy>& copies) {
  if (absl::Status status = open.device->Health(); !status.ok()) return status;
  Recorder recorder(*open.device, *open.pipelines, open.tuning);
  bool recorded = false;
  for (const trine_copy& copy : copies) {
    absl::Status status;
    if (copy.src.buffer != nullptr && copy.dst.buffer != nullptr) {
      if (copy.bytes == 0) continue;
      recorded = true;
      status = recorder.Copy(copy.src.buffer->memory.range().Part(copy.src.offset, copy.bytes),
                             copy.dst.buffer->memory.range().Part(copy.dst.offset, copy.bytes));
    } else {
      status = CopyOne(open, copy);
    }
    if (!status.ok()) return status;
  }
  if (!recorded) return absl::OkStatus();
  const auto recording = recorder.Finish();
  return recording.ok() ? open.RunAndWait(**recording) : recording.status();
}

}  // namespace
}  // namespace trine::vulkan

using trine::vulkan::Allocation;
using trine::vulkan::KindTrial;
using trine::vulkan::MemoryUse;

absl::StatusOr<Allocation> trine_device::Allocate(uint64_t bytes, bool io) {
  // Shaders read words, so the last word of a tensor must be whole.
  constexpr uint64_t kWord = 16;
  if (bytes > UINT64_MAX - kWord) {
    return absl::ResourceExhaustedError("no device has as many bytes");
  }
  const uint64_t whole = (bytes + kWord - 1) / kWord * kWord;
  // IO memory is used in both directions; memory for reading back serves for both.
  const MemoryUse use = io ? MemoryUse::kReadback : MemoryUse::kDevice;
  auto allocation = open->memory->Allocate(whole, use);
  if (!absl::IsResourceExhausted(allocation.status())) return allocation;
  open->transfer->Release();
  return open->memory->Allocate(whole, use);
}

absl::StatusOr<Allocation> trine_device::Import(void* host, uint64_t bytes, bool read_only) {
  // An import that failed its trial may seem to work but give wrong bytes.
  const KindTrial& kind = imports.Of(read_only);
  if (kind.outcome == KindTrial::kRefused) {
    const char* what = read_only ? "mapped files are not imported: " : "memory is not imported: ";
    return absl::UnimplementedError(what + kind.reason);
  }
  return open->Import(host, bytes, read_only);
}

absl::Status trine_device::Write(trine_buffer& to, uint64_t offset, const void* from,
                                 uint64_t bytes) {
  return open->transfer->Write(to.memory, offset, from, bytes);
}

absl::Status trine_device::Read(trine_buffer& from, uint64_t offset, void* to, uint64_t bytes) {
  return open->transfer->Read(from.memory, offset, to, bytes);
}

bool trine_device::CanCopy(const trine_buffer* from, const trine_buffer* to) const {
  return (from == nullptr || from->device == this) && (to == nullptr || to->device == this);
}

trine_status trine_device::RunCopies(const std::vector<trine_copy>& copies, const trine_sync& sync,
                                     trine_error* err) {
  return trine::sdk::SubmitSynchronously(
      sync, trine::backends::TimelineOf, err, [&](trine_error* own) {
        return trine::backends::Answer(own, trine::vulkan::RunNow(*open, copies));
      });
}
