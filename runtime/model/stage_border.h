// The hidden state between two stages: memory of the host's, a place for each pass that may be
// under way, so that a stage is at its next pass while the one behind it reads what the last one
// left. Devices that import it write and read there themselves; for the others it is copied.
// Not thread-safe while devices are added.
#ifndef TRINE_RUNTIME_MODEL_STAGE_BORDER_H_
#define TRINE_RUNTIME_MODEL_STAGE_BORDER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugins/handles.h"
#include "runtime/model/lent_memory.h"

namespace trine {

class StageBorder {
 public:
  // `devices`: those that may import it. RESOURCE_EXHAUSTED when there is no memory.
  static absl::StatusOr<std::unique_ptr<StageBorder>> Create(
      size_t places, uint64_t bytes, const std::vector<std::shared_ptr<Device>>& devices);

  size_t places() const { return places_; }
  float* At(size_t place) const {
    return reinterpret_cast<float*>(memory_->data() + place * place_bytes_);
  }
  uint64_t bytes() const { return places_ * place_bytes_; }

  // All places as the device's own memory, to bind an IO slot of `bytes` to; empty where it does
  // not import. An error when the device is lost. What stands on them goes before the border.
  absl::StatusOr<std::vector<trine_span>> Import(const std::shared_ptr<Device>& device,
                                                 uint64_t bytes);

 private:
  StageBorder() = default;

  size_t places_ = 0;
  uint64_t place_bytes_ = 0;
  std::unique_ptr<LentMemory> memory_;  // outlives what stands on it
  std::deque<Buffer> buffers_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_STAGE_BORDER_H_
