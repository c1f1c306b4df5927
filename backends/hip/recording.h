// A run's launches as the device keeps them: captured once, replayed as one submission.
#ifndef TRINE_BACKENDS_HIP_RECORDING_H_
#define TRINE_BACKENDS_HIP_RECORDING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/hip/gpu_device.h"
#include "kernels/hip/gpu/launch.h"

namespace trine::hip {

class Recording {
 public:
  // `graphs`: as a graph of the device's; without, they are started one by one at each run.
  static absl::StatusOr<std::unique_ptr<Recording>> Create(GpuDevice* gpu,
                                                           std::vector<Launch> launches,
                                                           bool graphs);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Other launches in its place, without making a graph anew where the device can do that.
  absl::Status Replace(std::vector<Launch> launches);

  // Puts all on the device's stream.
  absl::Status Start();
  // And waits.
  absl::Status Run();
  // One by one, with the time of each.
  absl::Status RunTimed(const std::function<void(const char* label, uint64_t ns)>& done);

 private:
  Recording(GpuDevice* gpu, std::vector<Launch> launches)
      : gpu_(gpu), launches_(std::move(launches)) {}

  // Within InUse.
  absl::Status Capture();
  absl::Status StartAll();
  absl::Status StartGraph();

  GpuDevice* gpu_;
  std::vector<Launch> launches_;
  gpuGraphExec graph_ = nullptr;
};

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_RECORDING_H_
