// Checks whether a model fits in memory before anything is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plugins/handles.h"
#include "runtime/model/arch/segment_graph.h"

namespace trine {

// A segment, or a piece of one, with its device.
struct SegmentPlace {
  static constexpr size_t kAlone = static_cast<size_t>(-1);
  std::shared_ptr<Device> device;
  std::string device_name;
  LayerSpan span;
  // The number of the segment that this is a piece of; kAlone: this is a whole segment. Pieces of
  // one segment on a device run one after the other, so they share one scratch and one IO memory of
  // `shared_io_bytes`.
  size_t segment = kAlone;
  uint64_t shared_io_bytes = 0;
};

// Returns RESOURCE_EXHAUSTED, with the numbers, if the segments do not fit in memory.
//
// Does not count weights that the CPU reads in a file's own pages, which can be dropped and read
// again; `packed_in_file` says that packed weights are in such pages too. If the model file is not
// mapped, counts as free the bytes of it that packing releases. Adds `border_bytes`, the host
// memory between segments, to the CPU's memory if the CPU has a segment.
//
// Makes the weights of a segment plain, and calls `warn`, if its packed weights do not fit or if
// the device refuses the graph with them.
absl::Status CheckMemory(const std::vector<SegmentPlace>& places, std::vector<SegmentGraph>* graphs,
                         bool file_mapped, bool packed_in_file, uint64_t border_bytes,
                         const std::function<void(const std::string&)>& warn);

}  // namespace trine
