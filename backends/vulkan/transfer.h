// Bytes between the host and the device's memory, at once: directly where the host sees the memory,
// through a staging buffer elsewhere.
#ifndef TRINE_BACKENDS_VULKAN_TRANSFER_H_
#define TRINE_BACKENDS_VULKAN_TRANSFER_H_

#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "backends/vulkan/memory.h"
#include "backends/vulkan/pipelines.h"
#include "backends/vulkan/queue.h"
#include "backends/vulkan/tuning.h"

namespace trine::vulkan {

// Thread-safe. Both calls return when the bytes are where they belong; no work that is submitted
// and not done may use them. INVALID_ARGUMENT for bytes beyond the allocation.
class Transfer {
 public:
  // Of one staging buffer, and of those that are kept for the next call: getting such memory from a
  // driver takes longer than copying through it.
  static constexpr uint64_t kStagingBytes = uint64_t{16} << 20;
  static constexpr uint64_t kKeptBytes = uint64_t{64} << 20;

  // A copy runs behind whatever the queue holds: it may take as long as that.
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

  // Gives up what is kept for the next call.
  void Release();

  // The ways of memory that the host does not see; for tests, of any.
  absl::Status WriteStaged(const BufferRange& to, const void* from);
  absl::Status ReadStaged(const BufferRange& from, void* to);

 private:
  struct Staging {
    MemoryUse use = MemoryUse::kUpload;
    Allocation memory;
  };
  // With room for `bytes`, or for kStagingBytes where they are more.
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

#endif  // TRINE_BACKENDS_VULKAN_TRANSFER_H_
