// What a plan reads and writes in memory that the host sees (IO slots) is kept in the device's own
// while it runs: kernels would wait for the bus at each read. A run begins by bringing in what its
// ops read, and ends by taking out what they wrote. Pure.
#ifndef TRINE_BACKENDS_HIP_IO_SHADOWS_H_
#define TRINE_BACKENDS_HIP_IO_SHADOWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "trine/backend_sdk.h"

namespace trine::hip {

class IoShadows {
 public:
  // The graph outlives it.
  explicit IoShadows(const sdk::Graph& graph);

  // Of all shadows, one behind the other.
  uint64_t bytes() const { return bytes_; }
  // Where a slot's begins; nothing for a slot that is no IO.
  std::optional<uint64_t> OffsetOf(uint32_t slot) const { return offsets_[slot]; }

  struct Transfers {
    std::vector<sdk::ByteRange> in, out;  // none is empty
  };
  Transfers At(const std::vector<int64_t>& params) const;

 private:
  const sdk::Graph& graph_;
  std::vector<std::optional<uint64_t>> offsets_;
  uint64_t bytes_ = 0;
};

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_IO_SHADOWS_H_
