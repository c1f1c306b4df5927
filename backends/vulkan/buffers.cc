#include "backends/vulkan/buffers.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "backends/vulkan/handles.h"
#include "backends/vulkan/recorder.h"

namespace trine::vulkan {
namespace {

bool IsMemoryKind(uint32_t memory) {
  return memory >= TRINE_MEMORY_WEIGHTS && memory <= TRINE_MEMORY_IO;
}

// What IO holds goes both ways; memory for reading back is one that the device writes as well.
MemoryUse UseOf(uint32_t memory) {
  return memory == TRINE_MEMORY_IO ? MemoryUse::kReadback : MemoryUse::kDevice;
}

std::unique_ptr<trine_buffer> MakeBuffer(trine_device* device, Allocation allocation,
                                         uint64_t bytes, uint32_t memory) {
  auto buffer = std::make_unique<trine_buffer>();
  buffer->device = device;
  buffer->allocation = std::move(allocation);
  buffer->bytes = bytes;
  buffer->memory = memory;
  return buffer;
}

// One end of a copy that host memory or a buffer has room for.
bool IsEnd(const trine_device* device, const trine_copy_end& end, uint64_t bytes) {
  if (end.buffer != nullptr) {
    return end.buffer->device == device && end.buffer->InRange(end.offset, bytes);
  }
  return end.host != nullptr || bytes == 0;
}

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
    return open.transfer->Write(copy.dst.buffer->allocation, copy.dst.offset, HostOf(copy.src),
                                copy.bytes);
  }
  return open.transfer->Read(copy.src.buffer->allocation, copy.src.offset, HostOf(copy.dst),
                             copy.bytes);
}

// The copies inside the device are one submission; the others are the host's.
absl::Status RunCopies(OpenDevice& open, const trine_copy_args& args) {
  if (absl::Status status = open.device->Health(); !status.ok()) return status;
  Recorder recorder(*open.device, *open.pipelines, open.tuning);
  bool recorded = false;
  for (uint32_t i = 0; i < args.n_copies; ++i) {
    const trine_copy copy = sdk::At(args.copies, args.copy_stride, i);
    absl::Status status;
    if (copy.src.buffer != nullptr && copy.dst.buffer != nullptr) {
      if (copy.bytes == 0) continue;
      recorded = true;
      status = recorder.Copy(copy.src.buffer->allocation.range().Part(copy.src.offset, copy.bytes),
                             copy.dst.buffer->allocation.range().Part(copy.dst.offset, copy.bytes));
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

trine_status BufferAlloc(trine_device* device, const trine_buffer_desc* given, trine_buffer** out,
                         trine_error* err) {
  const trine_buffer_desc desc = sdk::ReadIn(given);
  if (desc.bytes == 0) return Fail(err, TRINE_INVALID_ARGUMENT, "a buffer needs some bytes");
  if (!IsMemoryKind(desc.memory)) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "unknown kind of memory");
  }
  return sdk::Guard(err, [&]() -> trine_status {
    // Shaders read words: the last one of a tensor is whole.
    constexpr uint64_t kWord = 16;
    if (desc.bytes > UINT64_MAX - kWord) {
      return Fail(err, TRINE_RESOURCE_EXHAUSTED, "no device has as many bytes");
    }
    const uint64_t bytes = (desc.bytes + kWord - 1) / kWord * kWord;
    OpenDevice& open = *device->open;
    auto allocation = open.memory->Allocate(bytes, UseOf(desc.memory));
    if (absl::IsResourceExhausted(allocation.status())) {
      open.transfer->Release();
      allocation = open.memory->Allocate(bytes, UseOf(desc.memory));
    }
    if (!allocation.ok()) return Fail(err, allocation.status());
    *out = MakeBuffer(device, *std::move(allocation), desc.bytes, desc.memory).release();
    return TRINE_OK;
  });
}

trine_status BufferImport(trine_device* device, const trine_import_desc* given, trine_buffer** out,
                          trine_error* err) {
  const trine_import_desc desc = sdk::ReadIn(given);
  if (desc.host_ptr == nullptr || desc.bytes == 0) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "nothing to import");
  }
  if (!IsMemoryKind(desc.memory)) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "unknown kind of memory");
  }
  return sdk::Guard(err, [&]() -> trine_status {
    const bool read_only = (desc.flags & TRINE_IMPORT_READ_ONLY) != 0;
    // What failed when it was tried may look as if it worked, and be read wrong.
    const KindTrial& kind = device->imports.Of(read_only);
    if (kind.outcome == KindTrial::kRefused) {
      const char* what = read_only ? "mapped files are not imported: " : "memory is not imported: ";
      return Fail(err, TRINE_UNIMPLEMENTED, what + kind.reason);
    }
    auto allocation = device->open->Import(desc.host_ptr, desc.bytes, read_only);
    if (!allocation.ok()) return Fail(err, allocation.status());
    auto buffer = MakeBuffer(device, *std::move(allocation), desc.bytes, desc.memory);
    buffer->read_only = read_only;
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
  if (buffer->read_only) return Fail(err, TRINE_INVALID_ARGUMENT, "the buffer is read-only");
  if (bytes == 0) return TRINE_OK;
  return sdk::Guard(err, [&]() -> trine_status {
    const absl::Status status =
        buffer->device->open->transfer->Write(buffer->allocation, offset, src, bytes);
    return status.ok() ? TRINE_OK : Fail(err, status);
  });
}

trine_status BufferRead(trine_buffer* buffer, uint64_t offset, void* dst, uint64_t bytes,
                        trine_error* err) {
  if (!buffer->InRange(offset, bytes)) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "the read reaches beyond the buffer");
  }
  if (bytes == 0) return TRINE_OK;
  return sdk::Guard(err, [&]() -> trine_status {
    const absl::Status status =
        buffer->device->open->transfer->Read(buffer->allocation, offset, dst, bytes);
    return status.ok() ? TRINE_OK : Fail(err, status);
  });
}

void* BufferHostPtr(trine_buffer* buffer) {
  // Memory that the host reads slowly is better read through BufferRead.
  return buffer->allocation.host_cached() ? buffer->allocation.host() : nullptr;
}

trine_status BufferCopy(trine_device* device, const trine_copy_args* given, trine_error* err) {
  const trine_copy_args args = sdk::ReadIn(given);
  if (args.copies == nullptr && args.n_copies != 0) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "the copies are null");
  }
  for (uint32_t i = 0; i < args.n_copies; ++i) {
    const trine_copy copy = sdk::At(args.copies, args.copy_stride, i);
    if (copy.dst.buffer != nullptr && copy.dst.buffer->read_only) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "a copy goes into a read-only buffer");
    }
    if (!IsEnd(device, copy.src, copy.bytes) || !IsEnd(device, copy.dst, copy.bytes)) {
      return Fail(err, TRINE_INVALID_ARGUMENT,
                  "copy " + std::to_string(i) + " has no memory at one end or reaches beyond it");
    }
  }
  const auto timeline_of = [](trine_timeline* t) -> sdk::Timeline& { return *t; };
  return sdk::Guard(err, [&] {
    return sdk::SubmitSynchronously(args.sync, timeline_of, err,
                                    [&](trine_error* own) -> trine_status {
                                      const absl::Status status = RunCopies(*device->open, args);
                                      return status.ok() ? TRINE_OK : Fail(own, status);
                                    });
  });
}

}  // namespace trine::vulkan
