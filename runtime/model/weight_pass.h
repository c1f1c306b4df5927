// Looks at every weight of a file once before any kernel does, and packs those that are to be
// packed on the way: a value or scale that is no number makes the file useless, and floats outside
// the contract's range have to be brought into it.
#ifndef TRINE_RUNTIME_MODEL_WEIGHT_PASS_H_
#define TRINE_RUNTIME_MODEL_WEIGHT_PASS_H_

#include <vector>

#include "absl/status/status.h"
#include "plugins/host_services.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/load_progress.h"
#include "runtime/model/packed_weights.h"

namespace trine {

struct WeightTask {
  const gguf::TensorInfo* tensor = nullptr;
  bool check = true;             // not yet looked at
  PackedWeight* pack = nullptr;  // has its memory
  bool release = false;          // nobody reads the file's bytes afterwards
  bool out_of_range = false;     // out: it holds values outside the contract's range
};

uint64_t WorkOf(const std::vector<WeightTask>& tasks);  // in bytes, for the meter

// Reads all bytes of the tasks once, with the host's thread team; a slice of a tensor that is
// packed and not needed any more is let go of at once. `hash`: the packed weights get their hash
// and checksum. INVALID_ARGUMENT names the first tensor and row that is not finite; INTERNAL is a
// device that failed to pack.
absl::Status RunWeightPass(const gguf::File& file, std::vector<WeightTask>* tasks, bool hash,
                           const HostServices& host, LoadMeter* meter);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_WEIGHT_PASS_H_
