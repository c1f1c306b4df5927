// Where a model's weights lie for one device: on the file's own memory where the device can use it,
// else in buffers of the device's. Keeps the file and the buffers alive. Not thread-safe.
#ifndef TRINE_RUNTIME_MODEL_WEIGHT_STORE_H_
#define TRINE_RUNTIME_MODEL_WEIGHT_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "plugins/handles.h"
#include "runtime/gguf/gguf_file.h"

namespace trine {

struct WeightPlace {
  trine_span span{};           // aligned as the device wants it
  uint64_t tensor_offset = 0;  // of the weight within the span
};

class WeightStore {
 public:
  WeightStore(std::shared_ptr<const gguf::File> file, std::shared_ptr<Device> device)
      : file_(std::move(file)), device_(std::move(device)) {}

  // The weight as the file has it, or, `as_f32`, converted. `canon`: it has values outside the
  // contract's range, so a copy is made that has not.
  absl::StatusOr<WeightPlace> Place(const gguf::TensorInfo& tensor, bool as_f32, bool canon);

  uint64_t copied_bytes() const { return copied_bytes_; }  // beyond the file's own memory

 private:
  absl::StatusOr<const Buffer*> ImportPart(size_t part);
  absl::StatusOr<WeightPlace> Copy(const gguf::TensorInfo& tensor, bool as_f32, bool canon);

  std::shared_ptr<const gguf::File> file_;
  std::shared_ptr<Device> device_;
  std::map<size_t, Buffer> imported_;  // by part
  std::map<std::pair<const gguf::TensorInfo*, bool>, Buffer> copies_;
  bool import_refused_ = false;
  uint64_t copied_bytes_ = 0;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_WEIGHT_STORE_H_
