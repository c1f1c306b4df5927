// The functions of the plugin's table for memory and copies.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/hip/backend.h"

namespace trine::hip {
namespace {

// Returns whether the end of a copy is host memory, or a buffer with room for the bytes.
bool IsEnd(const trine_copy_end& end, uint64_t bytes) {
  if (end.buffer != nullptr) return end.buffer->InRange(end.offset, bytes);
  return end.host != nullptr || bytes == 0;
}

// Returns whether the device can do the copy. One end may be in a buffer of another device of the
// same backend, if the other end is in a buffer of this device.
bool IsOurs(const trine_device* device, const trine_copy& copy) {
  const trine_device* from = copy.src.buffer != nullptr ? copy.src.buffer->device : nullptr;
  const trine_device* to = copy.dst.buffer != nullptr ? copy.dst.buffer->device : nullptr;
  const auto fits = [&](const trine_device* one, const trine_device* other) {
    return one == nullptr || one == device || (other == device && one->backend == device->backend);
  };
  return fits(from, to) && fits(to, from);
}

bool IsOfHost(const trine_copy_end& end) {
  return end.buffer == nullptr || end.buffer->memory.of_host();
}

std::byte* PlaceOf(const trine_copy_end& end) {
  std::byte* base =
      end.buffer == nullptr ? static_cast<std::byte*>(end.host) : end.buffer->memory.data();
  return base + end.offset;
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

absl::Status RunCopies(trine_device* device, const std::vector<trine_copy>& copies) {
  absl::Status status = device->gpu->Health();
  for (size_t i = 0; i < copies.size() && status.ok(); ++i) status = CopyOne(device, copies[i]);
  return status;
}

}  // namespace

trine_status BufferAlloc(trine_device* device, const trine_buffer_desc* given, trine_buffer** out,
                         trine_error* err) {
  const trine_buffer_desc desc = sdk::ReadIn(given);
  if (desc.bytes == 0) return Fail(err, TRINE_INVALID_ARGUMENT, "a buffer needs some bytes");
  if (desc.memory < TRINE_MEMORY_WEIGHTS || desc.memory > TRINE_MEMORY_IO) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "unknown kind of memory");
  }
  return sdk::Guard(err, [&]() -> trine_status {
    const trine_status status = device->Health(err);
    if (status != TRINE_OK) return status;
    auto buffer = std::make_unique<trine_buffer>();
    auto memory = device->gpu->Allocate(desc.bytes, desc.memory == TRINE_MEMORY_IO);
    if (!memory.ok()) return Fail(err, memory.status());
    buffer->device = device;
    buffer->memory = *std::move(memory);
    *out = buffer.release();
    return TRINE_OK;
  });
}

trine_status BufferImport(trine_device* device, const trine_import_desc* given, trine_buffer** out,
                          trine_error* err) {
  const trine_import_desc desc = sdk::ReadIn(given);
  if (desc.host_ptr == nullptr || desc.bytes == 0) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "nothing to import");
  }
  if (desc.memory < TRINE_MEMORY_WEIGHTS || desc.memory > TRINE_MEMORY_IO) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "unknown kind of memory");
  }
  if (reinterpret_cast<uintptr_t>(desc.host_ptr) % kImportAlignment != 0 ||
      desc.bytes % kImportAlignment != 0) {
    return Fail(
        err, TRINE_INVALID_ARGUMENT,
        "imported memory must be aligned to " + std::to_string(kImportAlignment) + " bytes");
  }
  return sdk::Guard(err, [&]() -> trine_status {
    const trine_status status = device->Health(err);
    if (status != TRINE_OK) return status;
    auto buffer = std::make_unique<trine_buffer>();
    buffer->read_only = (desc.flags & TRINE_IMPORT_READ_ONLY) != 0;
    auto memory = device->gpu->Import(desc.host_ptr, desc.bytes, buffer->read_only);
    if (!memory.ok()) return Fail(err, memory.status());
    buffer->device = device;
    buffer->memory = *std::move(memory);
    *out = buffer.release();
    return TRINE_OK;
  });
}

void BufferFree(trine_buffer* buffer) { delete buffer; }

trine_status BufferWrite(trine_buffer* buffer, uint64_t offset, const void* src, uint64_t bytes,
                         trine_error* err) {
  if (!buffer->InRange(offset, bytes)) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "the write reaches beyond the buffer");
  }
  if (buffer->read_only) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "the buffer's memory can't be written");
  }
  const trine_status status = buffer->device->Health(err);
  if (status != TRINE_OK || bytes == 0) return status;
  if (buffer->memory.of_host()) {
    std::memcpy(buffer->memory.data() + offset, src, bytes);
    return TRINE_OK;
  }
  return sdk::Guard(err, [&] {
    return Answer(err, buffer->device->gpu->Write(buffer->memory.data() + offset, src, bytes));
  });
}

trine_status BufferRead(trine_buffer* buffer, uint64_t offset, void* dst, uint64_t bytes,
                        trine_error* err) {
  if (!buffer->InRange(offset, bytes)) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "the read reaches beyond the buffer");
  }
  const trine_status status = buffer->device->Health(err);
  if (status != TRINE_OK || bytes == 0) return status;
  if (buffer->memory.of_host()) {
    std::memcpy(dst, buffer->memory.data() + offset, bytes);
    return TRINE_OK;
  }
  return sdk::Guard(err, [&] {
    return Answer(err, buffer->device->gpu->Read(dst, buffer->memory.data() + offset, bytes));
  });
}

void* BufferHostPtr(trine_buffer* buffer) {
  return buffer->memory.of_host() ? buffer->memory.data() : nullptr;
}

trine_status BufferCopy(trine_device* device, const trine_copy_args* given, trine_error* err) {
  const trine_copy_args args = sdk::ReadIn(given);
  if (args.copies == nullptr && args.n_copies != 0) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "the copies are null");
  }
  return sdk::Guard(err, [&]() -> trine_status {
    std::vector<trine_copy> copies;
    for (uint32_t i = 0; i < args.n_copies; ++i) {
      copies.push_back(sdk::At(args.copies, args.copy_stride, i));
      if (!IsEnd(copies[i].src, copies[i].bytes) || !IsEnd(copies[i].dst, copies[i].bytes)) {
        return Fail(err, TRINE_INVALID_ARGUMENT,
                    "copy " + std::to_string(i) + " has no memory at one end or reaches beyond it");
      }
      if (!IsOurs(device, copies[i])) {
        return Fail(err, TRINE_INVALID_ARGUMENT,
                    "copy " + std::to_string(i) + " has no end in a buffer of this device's");
      }
      if (copies[i].dst.buffer != nullptr && copies[i].dst.buffer->read_only) {
        return Fail(err, TRINE_INVALID_ARGUMENT,
                    "copy " + std::to_string(i) + " is to memory that can't be written");
      }
    }
    const auto run = [device, copies = std::move(copies)] { return RunCopies(device, copies); };
    return Submit(device, args.sync, run, run, err);
  });
}

}  // namespace trine::hip
