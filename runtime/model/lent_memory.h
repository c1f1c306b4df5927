// Memory of the host's that devices import and write to.
#ifndef TRINE_RUNTIME_MODEL_LENT_MEMORY_H_
#define TRINE_RUNTIME_MODEL_LENT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "plugins/handles.h"

namespace trine {

class LentMemory {
 public:
  // `alignment`: a power of two, and a divisor of `bytes`. Without memory it is empty.
  LentMemory(uint64_t alignment, uint64_t bytes);
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;
  // A device that was lost may still be at work, and nobody can stop it: what it writes to is left
  // to it, for good.
  ~LentMemory();

  std::byte* data() const { return memory_; }
  // What stands on it goes before the memory does.
  absl::StatusOr<Buffer> LendTo(const std::shared_ptr<Device>& device, uint64_t bytes,
                                uint32_t kind);

 private:
  std::byte* const memory_;
  std::vector<std::shared_ptr<Device>> users_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_LENT_MEMORY_H_
