// The KV caches of a stage: memory of its device's own, or of the host's where another device works
// on the same ones. Not thread-safe.
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

 private:
  uint64_t bytes_ = 0;
  std::map<size_t, LentMemory> memory_;  // outlives what stands on it
  std::map<std::pair<const Device*, size_t>, Buffer> buffers_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_STAGE_CACHES_H_
