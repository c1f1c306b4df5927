// The KV caches of a stage: memory of its device's own, or of the host's where another device works
// on the same ones. Not thread-safe.
#ifndef TRINE_RUNTIME_MODEL_STAGE_CACHES_H_
#define TRINE_RUNTIME_MODEL_STAGE_CACHES_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "plugins/handles.h"

namespace trine {

class StageCaches {
 public:
  // Before anything is there: memory of the host's, which both import.
  void Share(const Device& home, const Device& other);
  bool shared() const { return import_alignment_ != 0; }

  // Where a device has a cache; there from the first call on. Without sharing, of one device.
  absl::StatusOr<trine_span> Of(const std::shared_ptr<Device>& device, size_t number,
                                uint64_t bytes);
  uint64_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  absl::StatusOr<Buffer> Import(const std::shared_ptr<Device>& device, size_t number,
                                uint64_t bytes);

  uint64_t import_alignment_ = 0;
  uint64_t bytes_ = 0;
  std::map<size_t, std::unique_ptr<void, Free>> memory_;  // outlives what stands on it
  std::map<std::pair<const Device*, size_t>, Buffer> buffers_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_STAGE_CACHES_H_
