// The functions of the plugin's table for memory and copies.
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "backends/vulkan/backend.h"
#include "backends/vulkan/exec/recorder.h"

namespace trine::vulkan {
namespace {

bool IsMemoryKind(uint32_t memory) {
  return memory >= TRINE_MEMORY_WEIGHTS && memory <= TRINE_MEMORY_IO;
}

// IO memory is used in both directions; memory for reading back serves for both.
MemoryUse UseOf(uint32_t memory) {
  return memory == TRINE_MEMORY_IO ? MemoryUse::kReadback : MemoryUse::kDevice;
}

std::unique_ptr<trine_buffer> MakeBuffer(trine_device* device, Allocation allocation,
                                         uint64_t bytes) {
  auto buffer = std::make_unique<trine_buffer>();
  buffer->device = device;
  buffer->allocation = std::move(allocation);
  buffer->bytes = bytes;
  return buffer;
}

// Returns whether an end of a copy is host memory, or a buffer with room for the bytes.
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

// Runs copies within the device as one submission, and the others on the host.
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
    // Shaders read words, so the last word of a tensor must be whole.
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
    *out = MakeBuffer(device, *std::move(allocation), desc.bytes).release();
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
    // An import that failed its trial may seem to work but give wrong bytes.
    const KindTrial& kind = device->imports.Of(read_only);
    if (kind.outcome == KindTrial::kRefused) {
      const char* what = read_only ? "mapped files are not imported: " : "memory is not imported: ";
      return Fail(err, TRINE_UNIMPLEMENTED, what + kind.reason);
    }
    auto allocation = device->open->Import(desc.host_ptr, desc.bytes, read_only);
    if (!allocation.ok()) return Fail(err, allocation.status());
    auto buffer = MakeBuffer(device, *std::move(allocation), desc.bytes);
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
    return Answer(err,
                  buffer->device->open->transfer->Write(buffer->allocation, offset, src, bytes));
  });
}

trine_status BufferRead(trine_buffer* buffer, uint64_t offset, void* dst, uint64_t bytes,
                        trine_error* err) {
  if (!buffer->InRange(offset, bytes)) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "the read reaches beyond the buffer");
  }
  if (bytes == 0) return TRINE_OK;
  return sdk::Guard(err, [&]() -> trine_status {
    return Answer(err,
                  buffer->device->open->transfer->Read(buffer->allocation, offset, dst, bytes));
  });
}

void* BufferHostPtr(trine_buffer* buffer) {
  // The host is slow at reading uncached memory, so callers should use BufferRead for it.
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
  return sdk::Guard(err, [&] {
    return sdk::SubmitSynchronously(args.sync, backends::TimelineOf, err, [&](trine_error* own) {
      return Answer(own, RunCopies(*device->open, args));
    });
  });
}

}  // namespace trine::vulkan
