// The KV caches of a stage: memory of its device's own, or of the host's where another device works
// on the same ones. Not thread-safe. Blocks are moved while no run of the stage is under way.
#ifndef TRINE_RUNTIME_MODEL_STAGE_CACHES_H_
#define TRINE_RUNTIME_MODEL_STAGE_CACHES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugins/handles.h"
#include "runtime/model/lent_memory.h"

namespace trine {

class StageCaches {
 public:
  // Before anything is there: memory of the host's for all of them, by their numbers, which both
  // devices import. Where that fails nothing is shared.
  absl::Status Share(const std::shared_ptr<Device>& home, const std::shared_ptr<Device>& other,
                     const std::map<size_t, uint64_t>& sizes);
  bool shared() const { return !memory_.empty(); }

  // Where a device has a cache; there from the first call on. Without sharing, of one device.
  absl::StatusOr<trine_span> Of(const std::shared_ptr<Device>& device, size_t number,
                                uint64_t bytes);
  // Null where it has none of that number.
  const Buffer* Find(const Device& device, size_t number) const;
  uint64_t bytes() const { return bytes_; }

  // Of caches of `n_blocks` each: what one block is in all of them, one after the other by their
  // numbers, and where it is among them.
  uint64_t BlockBytes(int64_t n_blocks) const { return bytes_ / static_cast<uint64_t>(n_blocks); }
  absl::Status ReadBlock(int64_t n_blocks, int32_t block, std::byte* to) const;
  absl::Status WriteBlock(int64_t n_blocks, int32_t block, const std::byte* from) const;
  absl::Status CopyBlock(int64_t n_blocks, int32_t from, int32_t to) const;

 private:
  struct Cache {
    const Buffer* buffer = nullptr;  // one of those that share the memory
    uint64_t bytes = 0;
  };

  uint64_t bytes_ = 0;
  std::map<size_t, Cache> caches_;       // by number
  std::map<size_t, LentMemory> memory_;  // outlives what stands on it
  std::map<std::pair<const Device*, size_t>, Buffer> buffers_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_STAGE_CACHES_H_
