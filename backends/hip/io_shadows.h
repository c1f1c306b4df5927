// Finds room for copies of a plan's IO slots in the device's own memory. IO slots lie in memory
// that the host sees, where kernels would wait for the bus at each read. So a run begins by copying
// in the bytes that its ops read, and ends by copying out those that they wrote. Computes offsets
// and ranges only.
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

  // Returns the bytes of all shadows together.
  uint64_t bytes() const { return bytes_; }
  // Returns where a slot's shadow begins, or nullopt if the slot is not IO.
  std::optional<uint64_t> OffsetOf(uint32_t slot) const { return offsets_[slot]; }

  struct Transfers {
    std::vector<sdk::ByteRange> in, out;  // no range is empty
  };
  // Returns the ranges to copy at the start and at the end of a run with these parameters.
  Transfers At(const std::vector<int64_t>& params) const;

 private:
  const sdk::Graph& graph_;
  std::vector<std::optional<uint64_t>> offsets_;
  uint64_t bytes_ = 0;
};

}  // namespace trine::hip
