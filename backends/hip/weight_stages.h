// Two pieces of a device's memory that weights are brought into by turns: a stream of its own fills
// one while kernels read the other.
//
// For each turn of a run: Fill, kernels on the device's stream, Release. Begin stands before the
// first turn, so that no copy of a run overtakes the work that the device's stream had before: no
// run needs to know what another one left in the stages.
#ifndef TRINE_BACKENDS_HIP_WEIGHT_STAGES_H_
#define TRINE_BACKENDS_HIP_WEIGHT_STAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/hip/gpu_device.h"

namespace trine::hip {

class WeightStages {
 public:
  struct Copy {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    uint64_t bytes = 0;
    bool pinned = false;
  };

  // Of so many bytes each, or RESOURCE_EXHAUSTED. The device outlives them.
  static absl::StatusOr<std::shared_ptr<WeightStages>> Create(GpuDevice* gpu, uint64_t bytes);
  ~WeightStages();
  WeightStages(const WeightStages&) = delete;
  WeightStages& operator=(const WeightStages&) = delete;

  uint64_t bytes() const { return memory_[0].bytes(); }
  std::byte* At(size_t turn) const { return memory_[turn % 2].data(); }

  // All within InUse.
  absl::Status Begin();
  // What is put on the device's stream from now on finds the copies done.
  absl::Status Fill(size_t turn, const std::vector<Copy>& copies);
  // What was put on the device's stream before is the last that reads the stage.
  absl::Status Release(size_t turn);
  // After a failure: nothing reads or writes any more when it returns.
  void Abandon();

 private:
  explicit WeightStages(GpuDevice* gpu) : gpu_(gpu) {}
  absl::Status Prepare(uint64_t bytes);

  GpuDevice* gpu_;
  gpuStream copies_ = nullptr;
  GpuMemory memory_[2];
  gpuEvent begun_ = nullptr, filled_[2] = {}, released_[2] = {};
};

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_WEIGHT_STAGES_H_
