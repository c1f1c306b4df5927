// Runs a segment on several devices, step by step: the pieces of a step at the same time, then the
// moves of values between them. Not thread-safe, except Busiest.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/exec/device_thread.h"
#include "dispatch/exec/device_times.h"
#include "dispatch/exec/segment.h"
#include "plugins/handles.h"
#include "plugins/timeline_handle.h"
#include "runtime/model/experts/divided_experts.h"
#include "runtime/model/experts/pass_choices.h"
#include "runtime/model/split/graph_split.h"
#include "runtime/model/split/tensor_places.h"

namespace trine {

class SplitStage {
 public:
  // Afterwards the caller takes the graphs from pieces(), and passes each to AddPiece with the
  // memory of its weights.
  SplitStage(std::vector<NamedDevice> devices, GraphSplit split);
  SplitStage(const SplitStage&) = delete;
  SplitStage& operator=(const SplitStage&) = delete;

  const std::vector<NamedDevice>& devices() const { return devices_; }
  std::vector<GraphPiece>& pieces() { return split_.pieces; }
  // Returns whether every op has the contract's bits. Call it after the last AddPiece.
  bool exact() const;
  // Returns the size of a device's memory for the values between pieces.
  uint64_t IoBytes(size_t device) const;

  // Sets what divides chosen experts; it must outlive this object. REQUIRES: the segment has
  // divided layers.
  void SetExperts(DividedExperts* experts) { experts_ = experts; }
  // Lets runs collect the chosen experts of layers that are not divided, too.
  void CountExperts() { counts_ = true; }
  // Allocates memory and starts threads. Call it before AddPiece. `scratch_bytes`: by device, the
  // most scratch that a piece needs. `streaming`: the device that fetches weights in its runs.
  absl::Status Allocate(const std::vector<uint64_t>& scratch_bytes,
                        std::optional<size_t> streaming = std::nullopt);
  // Records the plan of the next piece, in the order of pieces(). `memory` is the memory of its
  // weights and caches.
  absl::Status AddPiece(OpGraph graph, std::vector<SlotMemory> memory);

  // Writes an input of the next run. Does nothing if the segment has no such input.
  absl::Status Write(TensorId SegmentIo::*which, const void* data, uint64_t bytes);
  // Runs all steps. `params` has one value per parameter. Adds the experts that tokens choose to
  // `choices`. When it returns, even with an error, no device is at work any more.
  absl::Status Run(const std::vector<int64_t>& params, PassChoices* choices);
  // Reads the output of the last run. Returns the host's view if there is one and `keep` is false;
  // otherwise copies the output into `memory`, which must have room for it.
  absl::StatusOr<std::span<const float>> ReadOutput(const std::vector<int64_t>& params, bool keep,
                                                    float* memory);
  // Copies the rows that the logits were computed from into `memory`. REQUIRES: the graph gives
  // both.
  absl::StatusOr<std::span<const float>> ReadHidden(const std::vector<int64_t>& params,
                                                    float* memory);

  // Adds the time that each device has spent in calls since the last TakeTimes.
  void TakeTimes(DeviceTimes* times);

  // Returns the device whose current call has taken longest; "": none is at work. Any thread may
  // call it.
  BusyDevice Busiest() const;

 private:
  class Busy;
  struct Columns {  // columns of a value in host memory
    const float* data = nullptr;
    int64_t stride = 0;
  };

  int64_t RowsOf(const ValueMove& value) const;
  absl::Status RunPiece(size_t piece);
  size_t OwnPiece(const SplitStep& step) const;
  std::set<size_t> DevicesBeside() const;
  // Begin a piece while the caller goes on, and wait for its end.
  absl::Status BeginPiece(size_t piece);
  absl::Status FinishPiece(size_t piece);
  absl::Status RunStep(const SplitStep& step);
  absl::Status Move(const ValueMove& move);
  void Count(const ValueMove& move, const Columns& ids);
  // Returns the divided ids in place of the chosen ones.
  Columns Divide(const ValueMove& move, const Columns& ids);
  absl::StatusOr<std::span<const float>> ReadValue(const ValueMove& value, bool keep,
                                                   float* memory);
  absl::StatusOr<Columns> See(const ValueMove& value, const ValuePart& part, size_t staging);
  absl::Status Check(const ValueMove& value, const ValuePart& part, const Columns& columns) const;
  const Buffer& BufferOf(size_t place) const;
  float* HostPtr(size_t place) const { return static_cast<float*>(BufferOf(place).host_ptr()); }
  absl::Status WritePlace(size_t place, const void* data, uint64_t bytes);

  const std::vector<NamedDevice> devices_;
  GraphSplit split_;
  // by device; declared before the segments, which use them
  std::vector<std::vector<Buffer>> buffers_;
  std::vector<Buffer> scratch_;  // by device; declared before the segments, which use it
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<std::vector<float>> staging_;
  std::deque<std::atomic<int64_t>> began_;   // by device: when its call began; 0: it is idle
  std::deque<std::atomic<uint64_t>> spent_;  // by device: nanoseconds in calls
  const std::vector<int64_t>* params_ = nullptr;
  DividedExperts* experts_ = nullptr;
  PassChoices* choices_ = nullptr;  // of the pass that runs
  bool counts_ = false;
  std::vector<int32_t> divided_;  // ids as they are moved
  // How a device tells that it has done the work that was submitted to it.
  struct Line {
    TimelineHandle timeline;
    uint64_t value = 0;  // of the work that was submitted last
    int64_t begin = 0;   // when it was submitted
  };
  std::vector<std::optional<Line>> lines_;  // by device; nullopt: its runs end with their calls
  std::vector<size_t> asked_;               // by device: the piece that its thread runs
  std::vector<size_t> begun_;               // the pieces of a step that are under way
  // by device; declared last, since they use all of it
  std::vector<std::unique_ptr<DeviceThread>> threads_;
};

}  // namespace trine
