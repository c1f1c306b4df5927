#include "backends/hip/weight_stages.h"

#include <utility>

namespace trine::hip {

absl::StatusOr<std::shared_ptr<WeightStages>> WeightStages::Create(GpuDevice* gpu, uint64_t bytes) {
  std::shared_ptr<WeightStages> stages(new WeightStages(gpu));
  if (absl::Status status = stages->Prepare(bytes); !status.ok()) return status;
  return stages;
}

absl::Status WeightStages::Prepare(uint64_t bytes) {
  for (GpuMemory& memory : memory_) {
    auto allocated = gpu_->Allocate(bytes, /*of_host=*/false);
    if (!allocated.ok()) return allocated.status();
    memory = *std::move(allocated);
  }
  const InUse in_use(*gpu_);
  absl::Status status = gpu_->Check(gpuStreamCreate(&copies_), "a stream could not be made");
  for (gpuEvent* event : {&begun_, &filled_[0], &filled_[1], &released_[0], &released_[1]}) {
    if (!status.ok()) return status;
    status = gpu_->Check(gpuEventCreateUntimed(event), "an event could not be made");
  }
  return status;
}

WeightStages::~WeightStages() {
  const InUse in_use(*gpu_);
  if (copies_ != nullptr) (void)gpuStreamSynchronize(copies_);
  for (const gpuEvent event : {begun_, filled_[0], filled_[1], released_[0], released_[1]}) {
    if (event != nullptr) (void)gpuEventDestroy(event);
  }
  if (copies_ != nullptr) (void)gpuStreamDestroy(copies_);
}

absl::Status WeightStages::Begin() {
  const absl::Status status =
      gpu_->Check(gpuEventRecord(begun_, gpu_->stream()), "an event was not recorded");
  if (!status.ok()) return status;
  return gpu_->Check(gpuStreamWait(copies_, begun_), "a stream does not wait");
}

absl::Status WeightStages::Fill(size_t turn, const std::vector<Copy>& copies) {
  absl::Status status;
  if (turn >= 2) {
    status = gpu_->Check(gpuStreamWait(copies_, released_[turn % 2]), "a stream does not wait");
  }
  for (const Copy& copy : copies) {
    if (!status.ok()) return status;
    status = copy.pinned ? gpu_->Check(gpuMemcpyAsync(copy.to, copy.from, copy.bytes,
                                                      gpuMemcpyHostToDevice, copies_),
                                       "weights could not be brought in")
                         : gpu_->StartWrite(copy.to, copy.from, copy.bytes, copies_);
  }
  const gpuEvent filled = filled_[turn % 2];
  if (status.ok()) status = gpu_->Check(gpuEventRecord(filled, copies_), "weights did not come");
  if (!status.ok()) return status;
  return gpu_->Check(gpuStreamWait(gpu_->stream(), filled), "a stream does not wait");
}

absl::Status WeightStages::Release(size_t turn) {
  return gpu_->Check(gpuEventRecord(released_[turn % 2], gpu_->stream()),
                     "an event was not recorded");
}

void WeightStages::Abandon() {
  // A loss that only this shows is remembered; the caller has an error to tell already.
  (void)gpu_->Check(gpuStreamSynchronize(copies_), "copies of weights failed");
  (void)gpu_->Synchronize();
}

}  // namespace trine::hip
