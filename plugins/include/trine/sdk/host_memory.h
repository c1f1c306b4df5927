// The table's memory calls for a device whose buffers are plain memory: the CPU, an emulator, a
// device that shares the CPU's address space. A plugin defines its buffer and uses the calls:
//
//   struct trine_buffer : trine::sdk::HostBuffer {};
//   using Memory = trine::sdk::HostMemory<trine_buffer, trine_timeline>;
//   ... .buffer_alloc = Memory::Alloc, .buffer_free = Memory::Free, ...
#ifndef TRINE_SDK_HOST_MEMORY_H_
#define TRINE_SDK_HOST_MEMORY_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "trine/sdk/status.h"
#include "trine/sdk/timeline.h"

namespace trine::sdk {

// A buffer of plain memory.
struct HostBuffer {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  bool owned = false;  // false: imported
  bool read_only = false;

  bool InRange(uint64_t offset, uint64_t n) const { return offset <= bytes && n <= bytes - offset; }
};

// Holds the table's memory calls. `Buffer` is the plugin's trine_buffer, derived from HostBuffer;
// `TimelineHandle` is its trine_timeline, derived from Timeline.
template <class Buffer, class TimelineHandle>
struct HostMemory {
  static constexpr uint32_t kAlignment = 64;  // alignment of imported memory and binding offsets

  static constexpr uint64_t kLargeBuffer = uint64_t{4} << 20;

  // Maps pages from the system: zeroed, aligned, and placed on the NUMA node that touches them
  // first.
  static trine_status Alloc(trine_device*, const trine_buffer_desc* given, Buffer** out,
                            trine_error* err) {
    const trine_buffer_desc desc = ReadIn(given);
    if (desc.bytes == 0) return Fail(err, TRINE_INVALID_ARGUMENT, "a buffer needs some bytes");
    if (desc.memory < TRINE_MEMORY_WEIGHTS || desc.memory > TRINE_MEMORY_IO) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "unknown kind of memory");
    }
    return Guard(err, [&]() -> trine_status {
      auto buffer = std::make_unique<Buffer>();
      void* data =
          mmap(nullptr, desc.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (data == MAP_FAILED) {
        return Fail(err, TRINE_RESOURCE_EXHAUSTED,
                    "no memory for a buffer of " + std::to_string(desc.bytes) + " bytes");
      }
#if defined(MADV_HUGEPAGE)
      // Asks for large pages: weights are read from end to end, and the processor's prefetching
      // stops at the end of every page.
      if (desc.bytes >= kLargeBuffer) madvise(data, desc.bytes, MADV_HUGEPAGE);
#endif
      buffer->data = static_cast<std::byte*>(data);
      buffer->bytes = desc.bytes;
      buffer->owned = true;
      *out = buffer.release();
      return TRINE_OK;
    });
  }

  static trine_status Import(trine_device*, const trine_import_desc* given, Buffer** out,
                             trine_error* err) {
    const trine_import_desc desc = ReadIn(given);
    if (desc.host_ptr == nullptr || desc.bytes == 0) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "nothing to import");
    }
    if (desc.memory < TRINE_MEMORY_WEIGHTS || desc.memory > TRINE_MEMORY_IO) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "unknown kind of memory");
    }
    if (reinterpret_cast<uintptr_t>(desc.host_ptr) % kAlignment != 0 ||
        desc.bytes % kAlignment != 0) {
      return Fail(err, TRINE_INVALID_ARGUMENT,
                  "imported memory must be aligned to " + std::to_string(kAlignment) + " bytes");
    }
    return Guard(err, [&]() -> trine_status {
      auto buffer = std::make_unique<Buffer>();
      buffer->data = static_cast<std::byte*>(desc.host_ptr);
      buffer->bytes = desc.bytes;
      buffer->read_only = (desc.flags & TRINE_IMPORT_READ_ONLY) != 0;
      *out = buffer.release();
      return TRINE_OK;
    });
  }

  static void Free(Buffer* buffer) {
    if (buffer != nullptr && buffer->owned) munmap(buffer->data, buffer->bytes);
    delete buffer;
  }

  static void* HostPtr(Buffer* buffer) { return buffer->data; }

  static trine_status Write(Buffer* buffer, uint64_t offset, const void* src, uint64_t bytes,
                            trine_error* err) {
    if (!buffer->InRange(offset, bytes)) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the write reaches beyond the buffer");
    }
    if (buffer->read_only) return Fail(err, TRINE_INVALID_ARGUMENT, "the buffer is read-only");
    if (bytes != 0) std::memcpy(buffer->data + offset, src, bytes);
    return TRINE_OK;
  }

  static trine_status Read(Buffer* buffer, uint64_t offset, void* dst, uint64_t bytes,
                           trine_error* err) {
    if (!buffer->InRange(offset, bytes)) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the read reaches beyond the buffer");
    }
    if (bytes != 0) std::memcpy(dst, buffer->data + offset, bytes);
    return TRINE_OK;
  }

  static trine_status Copy(trine_device*, const trine_copy_args* given, trine_error* err) {
    const trine_copy_args args = ReadIn(given);
    if (args.copies == nullptr && args.n_copies != 0) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the copies are null");
    }
    for (uint32_t i = 0; i < args.n_copies; ++i) {
      const trine_copy copy = At(args.copies, args.copy_stride, i);
      const Buffer* to = copy.dst.buffer;
      if (to != nullptr && to->read_only) {
        return Fail(err, TRINE_INVALID_ARGUMENT, "a copy goes into a read-only buffer");
      }
      if (EndData(copy.src, copy.bytes) == nullptr || EndData(copy.dst, copy.bytes) == nullptr) {
        return Fail(err, TRINE_INVALID_ARGUMENT,
                    "copy " + std::to_string(i) + " has no memory at one end or reaches beyond it");
      }
    }
    const auto timeline_of = [](trine_timeline* t) -> Timeline& {
      return *static_cast<TimelineHandle*>(t);
    };
    return Guard(err, [&] {
      return SubmitSynchronously(args.sync, timeline_of, err, [&](trine_error*) -> trine_status {
        for (uint32_t i = 0; i < args.n_copies; ++i) {
          const trine_copy copy = At(args.copies, args.copy_stride, i);
          std::memmove(EndData(copy.dst, copy.bytes), EndData(copy.src, copy.bytes), copy.bytes);
        }
        return TRINE_OK;
      });
    });
  }

  // Returns a binding's memory, for PlanStorage; null if it is out of range or misaligned.
  static std::byte* SpanData(const trine_span& span) {
    const Buffer* buffer = span.buffer;
    if (buffer == nullptr || span.offset % kAlignment != 0 ||
        !buffer->InRange(span.offset, span.bytes)) {
      return nullptr;
    }
    return buffer->data + span.offset;
  }

 private:
  static std::byte* EndData(const trine_copy_end& end, uint64_t bytes) {
    const Buffer* buffer = end.buffer;
    if (buffer != nullptr) {
      return buffer->InRange(end.offset, bytes) ? buffer->data + end.offset : nullptr;
    }
    return end.host == nullptr ? nullptr : static_cast<std::byte*>(end.host) + end.offset;
  }
};

}  // namespace trine::sdk

#endif  // TRINE_SDK_HOST_MEMORY_H_
