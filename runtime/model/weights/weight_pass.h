// Reads every weight of a file once, before any kernel does, to check its values, and packs weights
// at the same time if a device wants them packed. Refuses a file with a value or scale that is not
// finite. Finds the weights with values outside the contract's range: packing corrects the values,
// and devices that read such a weight plain need a corrected copy.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "plugins/host_services.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/weights/load_progress.h"
#include "runtime/model/weights/packed_weights.h"

namespace trine {

// The work to do on one tensor.
struct WeightTask {
  const gguf::TensorInfo* tensor = nullptr;
  bool check = true;             // checks the values; false: they have been checked
  PackedWeight* pack = nullptr;  // packs into this weight, which has memory; null: does not pack
  bool release = false;       // releases the file's bytes after the pass, which is the last reader
  bool out_of_range = false;  // result: some values are outside the contract's range
};

// Returns the bytes that RunWeightPass will report, for LoadMeter::Expect.
uint64_t WorkOf(const std::vector<WeightTask>& tasks);

// Does the tasks with the host's thread team and reads each byte once. If a task allows it,
// releases each slice of the tensor as soon as it is done. With `hash`, sets source_hash and
// checksum of the packed weights. Returns INVALID_ARGUMENT, naming the tensor and the row, if a
// number is not finite; UNAVAILABLE if a device is lost; INTERNAL if a device can't pack.
absl::Status RunWeightPass(const gguf::File& file, std::vector<WeightTask>* tasks, bool hash,
                           const HostServices& host, LoadMeter* meter);

// Collects the tensors that segments use, and makes one task for all uses of a tensor.
class WeightTasks {
 public:
  // `file` must outlive this.
  explicit WeightTasks(const gguf::File& file) : file_(file) {}

  // Adds a use of a tensor. `weight` is null if the tensor is read plain. `placed`: the weight is
  // packed already, in the pack cache.
  void Add(const gguf::TensorInfo* tensor, PackedWeight* weight, bool placed);

  // Returns the tasks in the file's order, so that it is read from front to back. Releases the
  // file's bytes that will not be read.
  std::vector<WeightTask> Make() const;

 private:
  struct Uses {
    bool plain = false;
    std::vector<PackedWeight*> packed;
  };

  // Returns the uses of a tensor and of all tensors that overlap it, such as slices of its rows.
  Uses WithOverlapping(const std::vector<const gguf::TensorInfo*>& order, size_t index) const;

  const gguf::File& file_;
  std::map<const gguf::TensorInfo*, Uses> uses_;
};

}  // namespace trine
