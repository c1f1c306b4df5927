// Records a run's launches for the device: captured once, replayed as one submission.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/hip/gpu_device.h"
#include "kernels/hip/gpu/launch.h"

namespace trine::hip {

// Two pieces of a device's memory that hold streamed weights in turns: a separate stream fills one
// while kernels read the other.
//
// Each turn of a run is: Fill, kernels on the device's stream, Release. Begin comes before the
// first turn, so that no copy of a run overtakes the work that the device's stream had before. No
// run depends on the contents that another one left in the stages.
class WeightStages {
 public:
  struct Copy {
    std::byte* to = nullptr;
    HostPieces from;
    bool pinned = false;
  };

  // Makes stages of `bytes` each, or fails with RESOURCE_EXHAUSTED. The device must outlive them.
  static absl::StatusOr<std::shared_ptr<WeightStages>> Create(GpuDevice* gpu, uint64_t bytes);
  ~WeightStages();
  WeightStages(const WeightStages&) = delete;
  WeightStages& operator=(const WeightStages&) = delete;

  uint64_t bytes() const { return memory_[0].bytes(); }
  std::byte* At(size_t turn) const { return memory_[turn % 2].data(); }

  // All calls below are made within InUse.
  absl::Status Begin();
  // Fills the turn's stage. Work put on the device's stream afterwards finds the copies done.
  // `copy`: as in GpuDevice::StartWrite.
  absl::Status Fill(size_t turn, const std::vector<Copy>& copies, const HostCopy& copy);
  // Ends the turn: no work that is put on the device's stream later reads the stage.
  absl::Status Release(size_t turn);
  // After a failure: waits until nothing reads or writes the stages.
  void Abandon();

 private:
  explicit WeightStages(GpuDevice* gpu) : gpu_(gpu) {}
  absl::Status Prepare(uint64_t bytes);

  GpuDevice* gpu_;
  gpuStream copies_ = nullptr;
  GpuMemory memory_[2];
  gpuEvent begun_ = nullptr, filled_[2] = {}, released_[2] = {};
};

// The work of a run: copies from the host, kernels, copies to the host. If weights are streamed,
// copies run at the same time as kernels.
struct Work {
  struct Copy {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    uint64_t bytes = 0;
  };
  std::vector<Copy> in;
  std::vector<Launch> launches;
  size_t inputs = 0;   // how many first launches copy in values that any later one may read early
  bool early = false;  // a kernel may begin while the previous one runs, if the device can do that
  std::vector<Copy> out;

  // Copies into the stage whose turn it is, for some launches. Feeds are in order and do not
  // overlap.
  struct Feed {
    size_t first = 0, end = 0;  // launches [first, end)
    std::vector<WeightStages::Copy> copies;
  };
  std::vector<Feed> feeds;
  std::shared_ptr<WeightStages> stages;  // null if there are no feeds
};

// Work that can be run again and again.
class Recording {
 public:
  // If `graphs` is true, captures the work as a graph of the device. Otherwise each run starts the
  // launches one by one. Work that streams weights is never captured: the host itself may have to
  // copy, and the copies take longer than a graph saves.
  static absl::StatusOr<std::unique_ptr<Recording>> Create(GpuDevice* gpu, Work work, bool graphs);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Replaces the work. Updates the graph instead of making a new one if the device can.
  absl::Status Replace(Work work);

  // Puts all work on the device's stream.
  absl::Status Start();
  // Puts all work on the device's stream and waits for it. `copy`: copies streamed weights within
  // the host's memory; null: std::memcpy.
  absl::Status Run(const HostCopy& copy = nullptr);
  // Runs the launches one by one and reports the time of each.
  absl::Status RunTimed(const HostCopy& copy,
                        const std::function<void(const char* label, uint64_t ns)>& done);

 private:
  Recording(GpuDevice* gpu, Work work) : gpu_(gpu), work_(std::move(work)) {}

  // Call within InUse.
  absl::Status Capture();
  // Called after each part of the work that is put on the stream.
  using Mark = std::function<absl::Status(const char* label)>;
  absl::Status StartAll(bool early, const HostCopy& copy, const Mark& done);
  absl::Status StartLaunches(bool early, const HostCopy& copy, const Mark& done);
  bool CanStartEarly() const;
  absl::Status StartCopies(const std::vector<Work::Copy>& copies, gpuMemcpyKind kind);
  absl::Status StartGraph(const HostCopy& copy);

  GpuDevice* gpu_;
  Work work_;
  gpuGraphExec graph_ = nullptr;
};

}  // namespace trine::hip
