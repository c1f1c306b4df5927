// A run of a model's layers on one device: a plan recorded once, with the memory it needs, replayed
// for every batch. Not thread-safe: one run at a time, and inputs are written before it.
#ifndef TRINE_DISPATCH_SEGMENT_H_
#define TRINE_DISPATCH_SEGMENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/op_graph.h"
#include "plugins/handles.h"

namespace trine {

// Memory that outlives the segment: weights, state, and IO that it shares with others.
struct SlotMemory {
  SlotId slot = 0;
  trine_span span{};
  uint32_t alternate = 0;
};

// What a graph on a device takes beyond the memory bound to it.
struct SegmentNeeds {
  uint64_t scratch_bytes = 0;
  uint64_t io_bytes = 0;
};

class Segment {
 public:
  // UNIMPLEMENTED, naming the op, when the device can't run the graph exactly.
  static absl::StatusOr<SegmentNeeds> Query(const Device& device, const OpGraph& graph,
                                            uint32_t numerics);

  // Allocates scratch and one buffer per IO slot that `memory` does not have, and records the plan.
  // `scratch`: used in place of its own; outlives it, and is as large as its needs say.
  static absl::StatusOr<std::unique_ptr<Segment>> Create(std::shared_ptr<Device> device,
                                                         OpGraph graph, uint32_t numerics,
                                                         const std::vector<SlotMemory>& memory,
                                                         const Buffer* scratch = nullptr);

  const Device& device() const { return *device_; }
  const SegmentNeeds& needs() const { return needs_; }

  // Of the tensor's IO slot, if that is its own. Bytes are counted from the tensor's beginning.
  absl::Status Write(TensorId io, const void* data, uint64_t bytes);
  absl::Status Read(TensorId io, uint64_t offset, void* data, uint64_t bytes) const;
  // The slot's memory where the CPU can see it, else null.
  void* HostView(TensorId io);

  // One value per parameter of the graph. `alternate`: the one that is used of slots that have
  // several. Returns when the work is done.
  absl::Status Run(const std::vector<int64_t>& params, uint32_t alternate = 0);

 private:
  Segment() = default;
  absl::Status AllocateIo(const std::vector<SlotMemory>& memory);

  std::shared_ptr<Device> device_;
  OpGraph graph_;
  SegmentNeeds needs_;
  std::vector<uint32_t> alternates_;  // of a run, by slot
  Buffer scratch_;
  std::map<SlotId, Buffer> io_;
  Plan plan_;
};

}  // namespace trine

#endif  // TRINE_DISPATCH_SEGMENT_H_
