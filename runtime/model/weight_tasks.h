// The tensors that segments use, each once for all that has to be done with it.
#ifndef TRINE_RUNTIME_MODEL_WEIGHT_TASKS_H_
#define TRINE_RUNTIME_MODEL_WEIGHT_TASKS_H_

#include <cstddef>
#include <map>
#include <vector>

#include "runtime/gguf/gguf_file.h"
#include "runtime/model/packed_weights.h"
#include "runtime/model/weight_pass.h"

namespace trine {

class WeightTasks {
 public:
  // `file` outlives it.
  explicit WeightTasks(const gguf::File& file) : file_(file) {}

  // `weight`: null where it is used as the file has it. `placed`: it has been packed before.
  void Add(const gguf::TensorInfo* tensor, PackedWeight* weight, bool placed);

  // In the file's order, so that it is read from front to back. Lets go of what the file has and
  // nobody will read there.
  std::vector<WeightTask> Make() const;

 private:
  struct Uses {
    bool plain = false;
    std::vector<PackedWeight*> packed;
  };

  // What is done with any of a tensor's bytes: rows of it may be used by themselves.
  Uses WithOverlapping(const std::vector<const gguf::TensorInfo*>& order, size_t index) const;

  const gguf::File& file_;
  std::map<const gguf::TensorInfo*, Uses> uses_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_WEIGHT_TASKS_H_
