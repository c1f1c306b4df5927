// A segment that runs on several devices: its pieces, step by step, those of one step at the same
// time, and the values that are moved between them. Not thread-safe, but for Busiest.
#ifndef TRINE_RUNTIME_MODEL_SPLIT_STAGE_H_
#define TRINE_RUNTIME_MODEL_SPLIT_STAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/device_thread.h"
#include "dispatch/segment.h"
#include "plugins/handles.h"
#include "runtime/model/graph_split.h"
#include "runtime/model/tensor_places.h"

namespace trine {

class SplitStage {
 public:
  // The graphs of the pieces may be taken from it until they are added again, with their weights.
  SplitStage(std::vector<NamedDevice> devices, GraphSplit split);
  SplitStage(const SplitStage&) = delete;
  SplitStage& operator=(const SplitStage&) = delete;

  const std::vector<NamedDevice>& devices() const { return devices_; }
  std::vector<GraphPiece>& pieces() { return split_.pieces; }
  // What the values between its pieces take on a device.
  uint64_t IoBytes(size_t device) const;

  // In this order: memory and threads. `scratch_bytes`: of each device, the most of any piece.
  absl::Status Allocate(const std::vector<uint64_t>& scratch_bytes);
  // In their order, with the memory of weights and caches.
  absl::Status AddPiece(OpGraph graph, std::vector<SlotMemory> memory);

  // Before a run, of all inputs that it has.
  absl::Status Write(TensorId SegmentIo::*which, const void* data, uint64_t bytes);
  // One value per parameter. Returns when no device is at work any more, whatever went wrong.
  absl::Status Run(const std::vector<int64_t>& params);
  // What the run has left: where the host sees it, or, or with `keep`, in `memory`, which has room.
  absl::StatusOr<std::span<const float>> ReadOutput(const std::vector<int64_t>& params, bool keep,
                                                    float* memory);
  // Likewise the rows that the logits were made of, where the graph gives them too.
  absl::StatusOr<std::span<const float>> ReadHidden(const std::vector<int64_t>& params,
                                                    float* memory);

  // The device that has been at work longest with what it is at; "" when none is. From any thread.
  BusyDevice Busiest() const;

 private:
  class Busy;
  struct Columns {  // of a value, where the host sees them
    const float* data = nullptr;
    int64_t stride = 0;
  };

  int64_t RowsOf(const ValueMove& value) const;
  absl::Status RunPiece(size_t piece);
  absl::Status RunStep(const SplitStep& step);
  absl::Status Move(const ValueMove& move);
  absl::StatusOr<std::span<const float>> ReadValue(const ValueMove& value, bool keep,
                                                   float* memory);
  absl::StatusOr<Columns> See(const ValueMove& value, const ValuePart& part, size_t staging);
  absl::Status Check(const ValueMove& value, const ValuePart& part, const Columns& columns) const;
  const Buffer& BufferOf(size_t place) const;
  float* HostPtr(size_t place) const { return static_cast<float*>(BufferOf(place).host_ptr()); }
  absl::Status WritePlace(size_t place, const void* data, uint64_t bytes);

  const std::vector<NamedDevice> devices_;
  GraphSplit split_;
  std::vector<std::vector<Buffer>> buffers_;  // by device, before the segments, which use them
  std::vector<Buffer> scratch_;               // likewise
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<std::vector<float>> staging_;
  std::deque<std::atomic<int64_t>> began_;  // by device: since when it is at work; 0: it is not
  const std::vector<int64_t>* params_ = nullptr;
  std::vector<size_t> asked_;                           // by device: the piece for its thread
  std::vector<std::unique_ptr<DeviceThread>> threads_;  // by device; last: they use all of it
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_SPLIT_STAGE_H_
