// Gives each IO slot of a plan (TRINE_ROLE_IO) a shadow: a copy in the device's own memory. IO
// slots lie in memory that the host sees, where kernels would wait for the bus at each read, so
// kernels use the shadows.
//
// A run begins by copying bytes into the shadows: those that ops read and no earlier op has
// written. It ends by copying results out of the shadows. A result with gaps between its rows is
// copied out in one piece, gaps included. So its range is also copied in first, or the copy would
// change the gaps.
//
// IoShadows only computes offsets and ranges. The plan (plan.cc) has the memory and copies.
// Immutable: any thread may call.
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

  // Returns the size of the memory of all shadows.
  uint64_t bytes() const { return bytes_; }
  // Returns the offset of a slot's shadow in the memory of all shadows, a multiple of kAlignment
  // (op_launches.h). Returns nullopt if the slot is not IO.
  std::optional<uint64_t> OffsetOf(uint32_t slot) const { return offsets_[slot]; }

  // Ranges of bytes of IO slots. No range is empty.
  struct Transfers {
    // `in`: a range for each slot that has bytes to copy in, from the first of them to the last.
    // `out`: a range for each op's result in an IO slot, in the order of ops; they may overlap.
    std::vector<sdk::ByteRange> in, out;
  };
  // Returns the ranges to copy in at the start of a run, and to copy out at its end. `params`: the
  // values of the graph's parameters in that run.
  Transfers At(const std::vector<int64_t>& params) const;

 private:
  const sdk::Graph& graph_;
  std::vector<std::optional<uint64_t>> offsets_;
  uint64_t bytes_ = 0;
};

}  // namespace trine::hip
