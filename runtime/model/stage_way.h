// One way through the layers of a stage: on one device, or in pieces on several. Not thread-safe,
// but for Busiest.
#ifndef TRINE_RUNTIME_MODEL_STAGE_WAY_H_
#define TRINE_RUNTIME_MODEL_STAGE_WAY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/segment.h"
#include "runtime/model/segment_graph.h"
#include "runtime/model/split_stage.h"

namespace trine {

// Which ends of a segment are bound to the borders beside it (StageBorder).
struct BoundEnds {
  bool in = false, out = false;
};

class StageWay {
 public:
  StageWay(std::string device, const SegmentIo& io, std::unique_ptr<Segment> segment,
           BoundEnds bound = {});
  // Pieces may still be added to it.
  explicit StageWay(std::unique_ptr<SplitStage> split);

  SplitStage* split() const { return split_.get(); }  // null where all of it is on one device

  // Before a run. Nothing where the stage has no such input; else adds to `moved`. `data` of the
  // hidden state is the place of the border before it that the run is going to use.
  absl::Status Write(TensorId SegmentIo::*which, const void* data, uint64_t bytes, uint64_t* moved);
  // `place`: of the borders.
  absl::Status Run(const std::vector<int64_t>& params, size_t place);
  // What a run has left, `values` of them, looked at: where the host sees it, or, or with `keep`,
  // in `memory`, which has room. Of a hidden state that is the run's place of the border behind it,
  // with `keep`. Adds to `moved` what was copied.
  absl::StatusOr<std::span<const float>> Read(const std::vector<int64_t>& params, size_t values,
                                              bool keep, float* memory, uint64_t* moved);

  // Of a last stage that gives both, after Read: the rows that the logits were made of.
  absl::Status ReadHidden(const std::vector<int64_t>& params, std::span<float> memory,
                          uint64_t* moved);

  // A tap of the last run, where all is on one device.
  absl::Status ReadTensor(TensorId tensor, void* memory, uint64_t bytes) const {
    return segment_->Read(tensor, 0, memory, bytes);
  }

  std::vector<std::string> Devices() const;
  // The one that a run is waiting for, as far as can be told. From any thread.
  BusyDevice Busiest() const;

 private:
  absl::StatusOr<std::span<const float>> ReadSegment(size_t values, bool keep, float* memory,
                                                     uint64_t* moved);
  // Bytes of a border that cross a bus when the device itself reads or writes them.
  uint64_t Crossing(uint64_t bytes) const;

  std::string device_;
  SegmentIo io_;
  BoundEnds bound_;
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<SplitStage> split_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_STAGE_WAY_H_
