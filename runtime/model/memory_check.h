// Whether what a model takes fits, said before anything is loaded.
#ifndef TRINE_RUNTIME_MODEL_MEMORY_CHECK_H_
#define TRINE_RUNTIME_MODEL_MEMORY_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plugins/handles.h"
#include "runtime/model/segment_graph.h"

namespace trine {

// A run of layers on a device, or some ops of them.
struct SegmentPlace {
  static constexpr size_t kAlone = static_cast<size_t>(-1);
  std::shared_ptr<Device> device;
  std::string device_name;
  LayerSpan span;
  // Pieces of one segment on a device run one after the other: all of them have one scratch, and
  // IO memory of so many bytes together.
  size_t segment = kAlone;
  uint64_t shared_io_bytes = 0;
};

// RESOURCE_EXHAUSTED with the numbers. Weights that the CPU reads in a file's own pages are not
// counted: those can be dropped and read again. What packing lets go of in a file that is not
// mapped is free then. `packed_in_file`: packed weights are in pages of a file too, and are counted
// otherwise. A segment whose packed weights do not fit, or whose graph the device refuses with
// them, has plain ones afterwards, and `warn` hears of it. `border_bytes` of the host's memory are
// between segments: counted with the CPU's, where it has one.
absl::Status CheckMemory(const std::vector<SegmentPlace>& places, std::vector<SegmentGraph>* graphs,
                         bool file_mapped, bool packed_in_file, uint64_t border_bytes,
                         const std::function<void(const std::string&)>& warn);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_MEMORY_CHECK_H_
