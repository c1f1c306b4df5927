// Moves bytes between the host and the device's memory at once. Copies directly if the host sees
// the memory, else through a staging buffer.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "backends/vulkan/device/tuning.h"
#include "backends/vulkan/exec/pipelines.h"
#include "backends/vulkan/exec/queue.h"
#include "backends/vulkan/memory/memory.h"

namespace trine::vulkan {

// Read and Write return when the bytes are in place, or return INVALID_ARGUMENT for bytes beyond
// the allocation. No work in flight may use those bytes. Thread-safe.
class Transfer {
 public:
  // The largest staging buffer, and the most bytes of staging buffers that are kept for later
  // calls. They are kept because getting such memory from a driver takes longer than copying
  // through it.
  static constexpr uint64_t kStagingBytes = uint64_t{16} << 20;
  static constexpr uint64_t kKeptBytes = uint64_t{64} << 20;

  // A copy runs after all work in the queue, so it may take as long as that work.
  static constexpr uint64_t kTimeoutNs = 600'000'000'000;

  Transfer(Device& device, Memory& memory, Pipelines& pipelines, Queue& queue, const Tuning& tuning,
           uint64_t timeout_ns = kTimeoutNs)
      : device_(device),
        memory_(memory),
        pipelines_(pipelines),
        queue_(queue),
        tuning_(tuning),
        timeout_ns_(timeout_ns) {}

  absl::Status Write(const Allocation& to, uint64_t offset, const void* from, uint64_t bytes);
  absl::Status Read(const Allocation& from, uint64_t offset, void* to, uint64_t bytes);

  // Frees the staging buffers that are kept for later calls.
  void Release();

  // Copy through staging buffers. Public because tests use them for any memory.
  absl::Status WriteStaged(const BufferRange& to, const void* from);
  absl::Status ReadStaged(const BufferRange& from, void* to);

 private:
  struct Staging {
    MemoryUse use = MemoryUse::kUpload;
    Allocation memory;
  };
  // Returns a staging buffer with room for `bytes`, at most kStagingBytes.
  absl::StatusOr<Staging> Take(uint64_t bytes, MemoryUse use);
  void Keep(Staging staging);

  absl::Status CopyAndWait(const BufferRange& from, const BufferRange& to);

  Device& device_;
  Memory& memory_;
  Pipelines& pipelines_;
  Queue& queue_;
  Tuning tuning_;
  uint64_t timeout_ns_;
  std::mutex mutex_;
  std::vector<Staging> kept_;
  uint64_t kept_bytes_ = 0;
};

}  // namespace trine::vulkan
