// Whether what a model takes fits, said before anything is loaded.
#ifndef TRINE_RUNTIME_MODEL_MEMORY_CHECK_H_
#define TRINE_RUNTIME_MODEL_MEMORY_CHECK_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plugins/handles.h"
#include "runtime/model/segment_graph.h"

namespace trine {

struct SegmentPlace {
  std::shared_ptr<Device> device;
  std::string device_name;
  LayerSpan span;
};

// RESOURCE_EXHAUSTED with the numbers. Weights that the CPU reads in a file's own pages are not
// counted: those can be dropped and read again. What packing lets go of in a file that is not
// mapped is free then. `packed_in_file`: packed weights are in pages of a file too, and are counted
// otherwise. A segment whose packed weights do not fit, or whose graph the device refuses with
// them, has plain ones afterwards, and `warn` hears of it.
absl::Status CheckMemory(const std::vector<SegmentPlace>& places, std::vector<SegmentGraph>* graphs,
                         bool file_mapped, bool packed_in_file,
                         const std::function<void(const std::string&)>& warn);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_MEMORY_CHECK_H_
