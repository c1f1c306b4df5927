// The memory of stages: the host memory that devices import, the borders between stages, and the KV
// caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugins/handles.h"

namespace trine {

// Memory of the host that devices import and write to.
class LentMemory {
 public:
  // `alignment` is a power of two and divides `bytes`. data() is null if there is no memory.
  LentMemory(uint64_t alignment, uint64_t bytes);
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;
  // Leaks the memory if an asynchronous device that imported it was lost: such a device may still
  // write to it, and it cannot be stopped.
  ~LentMemory();

  std::byte* data() const { return memory_; }
  // Imports the memory into `device`. The buffer must be destroyed before this object.
  absl::StatusOr<Buffer> LendTo(const std::shared_ptr<Device>& device, uint64_t bytes,
                                uint32_t kind);

 private:
  std::byte* const memory_;
  std::vector<std::shared_ptr<Device>> users_;
};

// The border between two stages: memory of the host with room for the hidden states of each pass in
// flight, by pass slot. So a stage can run its next pass while the stage after it reads the hidden
// states of the last pass. Devices that import the memory read and write it themselves; for others
// the hidden states are copied. Not thread-safe while devices are added.
class StageBorder {
 public:
  // Allocates room for `bytes` in each of `places` pass slots, aligned for the devices that may
  // import it. Returns RESOURCE_EXHAUSTED if there is no memory.
  static absl::StatusOr<std::unique_ptr<StageBorder>> Create(
      size_t places, uint64_t bytes, const std::vector<std::shared_ptr<Device>>& devices);

  size_t places() const { return places_; }
  float* At(size_t slot) const {
    return reinterpret_cast<float*>(memory_->data() + slot * slot_bytes_);
  }
  uint64_t bytes() const { return places_ * slot_bytes_; }

  // Imports the border into `device`. Returns a span of `bytes` for each pass slot, or no spans if
  // the device can't import it. Fails if the device is lost. Users of the spans must be destroyed
  // before the border.
  absl::StatusOr<std::vector<trine_span>> Import(const std::shared_ptr<Device>& device,
                                                 uint64_t bytes);

 private:
  StageBorder() = default;

  size_t places_ = 0;
  uint64_t slot_bytes_ = 0;
  std::unique_ptr<LentMemory> memory_;  // declared before the buffers, which use it
  std::deque<Buffer> buffers_;
};

// The KV caches of a stage. They are in its device's own memory, or in the host's memory if a
// helper uses the same caches. Not thread-safe. Blocks may be moved only while the stage does not
// run.
class StageCaches {
 public:
  // Allocates host memory for all caches, `sizes` by cache number, and imports it into both
  // devices. Call it before Of. If it fails, nothing is shared.
  absl::Status Share(const std::shared_ptr<Device>& home, const std::shared_ptr<Device>& other,
                     const std::map<size_t, uint64_t>& sizes);
  bool shared() const { return !memory_.empty(); }

  // Returns a cache in the memory of `device`; allocates it on the first call. Only one device may
  // ask for it unless Share was called.
  absl::StatusOr<trine_span> Of(const std::shared_ptr<Device>& device, size_t number,
                                uint64_t bytes);
  // Returns null if the device has no cache of that number.
  const Buffer* Find(const Device& device, size_t number) const;
  uint64_t bytes() const { return bytes_; }

  // BlockBytes returns the size of one block over all caches; the others read, write or copy a
  // block. `n_blocks` is the number of blocks in each cache. The bytes of a block are its part of
  // each cache in turn, in the order of the caches' numbers.
  uint64_t BlockBytes(int64_t n_blocks) const { return bytes_ / static_cast<uint64_t>(n_blocks); }
  absl::Status ReadBlock(int64_t n_blocks, int32_t block, std::byte* to) const;
  absl::Status WriteBlock(int64_t n_blocks, int32_t block, const std::byte* from) const;
  absl::Status CopyBlock(int64_t n_blocks, int32_t from, int32_t to) const;

 private:
  struct Cache {
    const Buffer* buffer = nullptr;  // any of the buffers that share the memory
    uint64_t bytes = 0;
  };

  uint64_t bytes_ = 0;
  std::map<size_t, Cache> caches_;       // by number
  std::map<size_t, LentMemory> memory_;  // declared before the buffers, which use it
  std::map<std::pair<const Device*, size_t>, Buffer> buffers_;
};

}  // namespace trine
