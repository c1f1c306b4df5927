// Gives each IO slot of a plan (TRINE_ROLE_IO) a shadow: a copy in the device's own memory. IO
// slots lie in memory that the host sees, where kernels would wait for the bus at each read. A run
// first copies in the bytes that ops read before any op writes them, and the ranges of results with
// gaps, because the gaps are copied out with the results. It ends by copying out the results. This
// class computes offsets and ranges; the plan reserves the room and copies.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trine/backend_sdk.h"

namespace trine::hip {

class IoShadows {
 public:
  // The graph must outlive this object.
  explicit IoShadows(const sdk::Graph& graph);

  // Returns the total size of all shadows in bytes.
  uint64_t bytes() const { return bytes_; }
  // Returns the offset of a slot's shadow in the room of all shadows, or nullopt if the slot is not
  // IO.
  std::optional<uint64_t> OffsetOf(uint32_t slot) const { return offsets_[slot]; }

  struct Transfers {
    // Ranges are offsets in the slot; none is empty. `in` has at most one range per slot, `out` one
    // per result, in the order of ops; ranges of `out` may overlap.
    std::vector<sdk::ByteRange> in, out;
  };
  // Returns the ranges to copy at the start and at the end of a run with these parameters.
  Transfers At(const std::vector<int64_t>& params) const;

 private:
  const sdk::Graph& graph_;
  std::vector<std::optional<uint64_t>> offsets_;
  uint64_t bytes_ = 0;
};

}  // namespace trine::hip
