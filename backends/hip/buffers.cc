// The functions of the plugin's table for memory and copies.
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/hip/backend.h"

namespace trine::hip {
namespace {

bool IsOfHost(const trine_copy_end& end) {
  return end.buffer == nullptr || end.buffer->memory.of_host();
}

std::byte* PlaceOf(const trine_copy_end& end) {
  return end.buffer == nullptr ? static_cast<std::byte*>(end.host) + end.offset
                               : end.buffer->At(end.offset);
}

bool IsPinned(const trine_copy_end& end) {
  return end.buffer != nullptr && end.buffer->memory.kind() != MemoryKind::kPageable;
}

absl::Status CopyIn(GpuDevice& gpu, std::byte* to, const std::byte* from, uint64_t bytes,
                    bool pinned) {
  return pinned ? gpu.CopyPinned(to, from, bytes, gpuMemcpyHostToDevice)
                : gpu.Write(to, from, bytes);
}

absl::Status CopyOut(GpuDevice& gpu, std::byte* to, const std::byte* from, uint64_t bytes,
                     bool pinned) {
  return pinned ? gpu.CopyPinned(to, from, bytes, gpuMemcpyDeviceToHost)
                : gpu.Read(to, from, bytes);
}

// Waits for the device's earlier work. Submissions relies on work being done in order: the stream
// keeps its order, but a copy that does not go through the stream must wait.
absl::Status AwaitOwnWork(trine_device* device) {
  const InUse in_use(*device->gpu);
  return device->gpu->Synchronize();
}

absl::Status CopyOne(trine_device* device, const trine_copy& copy) {
  if (copy.bytes == 0) return absl::OkStatus();
  const bool from_host = IsOfHost(copy.src), to_host = IsOfHost(copy.dst);
  if (from_host && to_host) {
    if (absl::Status status = AwaitOwnWork(device); !status.ok()) return status;
    std::memmove(PlaceOf(copy.dst), PlaceOf(copy.src), copy.bytes);
    return absl::OkStatus();
  }
  std::byte* const to = PlaceOf(copy.dst);
  const std::byte* const from = PlaceOf(copy.src);
  if (from_host || to_host) {
    trine_device* const holder = (from_host ? copy.dst : copy.src).buffer->device;
    if (holder != device) {
      if (absl::Status status = AwaitOwnWork(device); !status.ok()) return status;
    }
    const absl::Status status =
        from_host ? CopyIn(*holder->gpu, to, from, copy.bytes, IsPinned(copy.src))
                  : CopyOut(*holder->gpu, to, from, copy.bytes, IsPinned(copy.dst));
    return holder == device ? status : NotOurs(status);
  }
  GpuDevice &target = *copy.dst.buffer->device->gpu, &source = *copy.src.buffer->device->gpu;
  if (&target == &source) return target.Copy(to, from, copy.bytes);
  if (&target != device->gpu.get()) {
    if (absl::Status status = AwaitOwnWork(device); !status.ok()) return status;
  }
  // Only the loss of `device` itself may be reported as UNAVAILABLE.
  const absl::Status status = device->backend->peers->Copy(target, to, source, from, copy.bytes);
  if (status.ok() || &target == device->gpu.get()) return status;
  if (absl::Status own = source.Health(); !own.ok()) return own;
  return NotOurs(status);
}

}  // namespace
}  // namespace trine::hip

using trine::hip::GpuMemory;
using trine::hip::kImportAlignment;

absl::StatusOr<GpuMemory> trine_device::Allocate(uint64_t bytes, bool io) {
  return gpu->Allocate(bytes, io);
}

absl::StatusOr<GpuMemory> trine_device::Import(void* host, uint64_t bytes, bool read_only) {
  if (reinterpret_cast<uintptr_t>(host) % kImportAlignment != 0 || bytes % kImportAlignment != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("imported memory must be aligned to ", kImportAlignment, " bytes"));
  }
  if (!read_only) return gpu->Import(host, bytes);
  if (!backend->options.pin_files) {
    return GpuMemory(gpu.get(), static_cast<std::byte*>(host), bytes,
                     trine::hip::MemoryKind::kPageable);
  }
  std::string why;
  GpuMemory memory = gpu->ImportReadOnly(host, bytes, &why);
  if (!why.empty() && !told_of_pinning.exchange(true)) {
    trine::backends::Log(
        *backend->host, TRINE_LOG_INFO,
        absl::StrCat("hip: pages of a file could not be pinned (", why,
                     "): weights that are streamed from it take the slower way through the host's "
                     "threads"));
  }
  return memory;
}

absl::Status trine_device::Write(trine_buffer& to, uint64_t offset, const void* from,
                                 uint64_t bytes) {
  if (!to.memory.of_host()) return gpu->Write(to.At(offset), from, bytes);
  std::memcpy(to.At(offset), from, bytes);
  return absl::OkStatus();
}

absl::Status trine_device::Read(trine_buffer& from, uint64_t offset, void* to, uint64_t bytes) {
  if (!from.memory.of_host()) return gpu->Read(to, from.At(offset), bytes);
  std::memcpy(to, from.At(offset), bytes);
  return absl::OkStatus();
}

bool trine_device::CanCopy(const trine_buffer* from, const trine_buffer* to) const {
  const auto fits = [&](const trine_buffer* one, const trine_buffer* other) {
    if (one == nullptr || one->device == this) return true;
    return other != nullptr && other->device == this && one->device->backend == backend;
  };
  return fits(from, to) && fits(to, from);
}

trine_status trine_device::RunCopies(std::vector<trine_copy> copies, const trine_sync& sync,
                                     trine_error* err) {
  const auto run = [this, copies = std::move(copies)] {
    absl::Status status = Health();
    for (size_t i = 0; i < copies.size() && status.ok(); ++i) {
      status = trine::hip::CopyOne(this, copies[i]);
    }
    return status;
  };
  return trine::hip::Submit(this, sync, run, run, err);
}
