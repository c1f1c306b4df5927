// A run's launches as the device keeps them: captured once, replayed as one submission.
#ifndef TRINE_BACKENDS_HIP_RECORDING_H_
#define TRINE_BACKENDS_HIP_RECORDING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/hip/gpu_device.h"
#include "backends/hip/weight_stages.h"
#include "kernels/hip/gpu/launch.h"

namespace trine::hip {

// What a run does: copies between the host's memory and the device's, kernels, copies; of weights
// that are streamed, copies beside the kernels.
struct Work {
  struct Copy {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    uint64_t bytes = 0;
  };
  std::vector<Copy> in;
  std::vector<Launch> launches;
  size_t inputs = 0;   // of the launches: those that bring in what all others may read early
  bool early = false;  // where the device can: a kernel may begin while the one before it runs
  std::vector<Copy> out;

  // What some launches read, in the stage whose turn it is: in order, none within another.
  struct Feed {
    size_t first = 0, end = 0;  // launches
    std::vector<WeightStages::Copy> copies;
  };
  std::vector<Feed> feeds;
  std::shared_ptr<WeightStages> stages;  // where there are feeds
};

class Recording {
 public:
  // `graphs`: as a graph of the device's; without, they are started one by one at each run. So is
  // what streams weights: its copies may be the host's own work, and outlast what graphs save.
  static absl::StatusOr<std::unique_ptr<Recording>> Create(GpuDevice* gpu, Work work, bool graphs);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Other work in its place, without making a graph anew where the device can do that.
  absl::Status Replace(Work work);

  // Puts all on the device's stream.
  absl::Status Start();
  // And waits.
  absl::Status Run();
  // One by one, with the time of each.
  absl::Status RunTimed(const std::function<void(const char* label, uint64_t ns)>& done);

 private:
  Recording(GpuDevice* gpu, Work work) : gpu_(gpu), work_(std::move(work)) {}

  // Within InUse.
  absl::Status Capture();
  // `done` is called behind each part of the work that is put on the stream.
  using Mark = std::function<absl::Status(const char* label)>;
  absl::Status StartAll(bool early, const Mark& done);
  absl::Status StartLaunches(bool early, const Mark& done);
  bool CanStartEarly() const;
  absl::Status StartCopies(const std::vector<Work::Copy>& copies, gpuMemcpyKind kind);
  absl::Status StartGraph();

  GpuDevice* gpu_;
  Work work_;
  gpuGraphExec graph_ = nullptr;
};

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_RECORDING_H_
