// A span of layers on one device: a plan that was recorded once and is run for every batch, with
// the memory that it needs. Not thread-safe: write the inputs before a run, and run once at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/exec/op_graph.h"
#include "plugins/handles.h"
#include "trine/backend.h"

namespace trine {

// The memory in which a device reads weights that have the layout of the file.
enum class WeightPath {
  kFile,   // in the mapped file's own pages
  kArena,  // in memory that the CPU and the device share, filled from the file
  kCopy,   // in the device's memory, in addition to the file's pages
};
const char* WeightPathName(WeightPath path);  // "file", "arena", "copy"

// Returns whether a device may use weights in memory that it imports. Returns false if the device
// has its own memory, because imported weights would come over a bus at each run; if the plugin has
// tried importing and failed; and for mapped files (`read_only`), if the device's alignment is
// larger than a page.
bool MayImport(const trine_device_info& info, bool read_only);

// Returns what can't be imported and why, as far as that is known without trying; "" if nothing is
// known to fail.
std::string ImportRefusal(const trine_device_info& info);

// Returns the path that the plugin's findings allow. Expects importing to work if the plugin has
// not tried it.
WeightPath ExpectedWeightPath(const trine_device_info& info);

// Describes the expected path in words, with the reason why a better path is refused.
std::string DescribeWeightPath(const trine_device_info& info);

// Memory that outlives the segment: weights, state, and IO shared with other segments.
struct SlotMemory {
  SlotId slot = 0;
  trine_span span{};
  uint32_t alternate = 0;
};

// The memory that a graph takes on a device beyond what is bound to it.
struct SegmentNeeds {
  uint64_t scratch_bytes = 0;
  uint64_t io_bytes = 0;
};

// Returns whether the device runs an op of the graph, as exactly as the graph asks.
bool RunsOp(const Device& device, const OpGraph& graph, size_t op);
// Returns whether the device runs all ops of the graph, as exactly as the graph asks.
bool RunsAll(const Device& device, const OpGraph& graph);
// Returns whether the device runs all ops that read the tensor, as exactly as the graph asks.
bool RunsReaders(const Device& device, const OpGraph& graph, TensorId tensor);

class Segment {
 public:
  // Returns the memory that a segment of this graph would take. Returns UNIMPLEMENTED, naming the
  // op, if the device can't run the graph as exactly as the graph asks.
  static absl::StatusOr<SegmentNeeds> Query(const Device& device, const OpGraph& graph);

  // Allocates scratch and one buffer for each IO slot that `memory` does not bind, and records the
  // plan. A graph that may be FAST runs as an EXACT one if the device has all of its ops exactly.
  // `scratch`: used instead of allocated scratch; it must outlive the segment and be as large
  // as Query says. null: the segment allocates its own.
  static absl::StatusOr<std::unique_ptr<Segment>> Create(std::shared_ptr<Device> device,
                                                         OpGraph graph,
                                                         const std::vector<SlotMemory>& memory,
                                                         const Buffer* scratch = nullptr);

  const Device& device() const { return *device_; }
  const SegmentNeeds& needs() const { return needs_; }
  // Returns whether every op has the contract's bits. Always true if the graph asks for them.
  bool exact() const { return exact_; }

  // Copy bytes to or from a tensor in an IO slot that the segment allocated. `offset` is counted
  // from the tensor's beginning.
  absl::Status Write(TensorId io, const void* data, uint64_t bytes);
  absl::Status Read(TensorId io, uint64_t offset, void* data, uint64_t bytes) const;
  // Returns the tensor's memory if the CPU can access it, else null.
  void* HostView(TensorId io);

  // Runs the plan with one value per parameter of the graph, and returns when the work is done.
  // `alternate`: the index of the memory to use, for slots that have several.
  absl::Status Run(const std::vector<int64_t>& params, uint32_t alternate = 0);
  // Submits a run of the plan, whose end `signal` tells. May return before the work is done. After
  // an error nothing was submitted.
  absl::Status Submit(const std::vector<int64_t>& params, const trine_point& signal);

 private:
  Segment() = default;
  absl::Status RunPlan(const std::vector<int64_t>& params, uint32_t alternate,
                       const trine_sync& sync);
  absl::Status AllocateIo(const std::vector<SlotMemory>& memory);

  std::shared_ptr<Device> device_;
  OpGraph graph_;
  SegmentNeeds needs_;
  bool exact_ = true;
  std::vector<uint32_t> alternates_;  // of the current run, by slot
  Buffer scratch_;
  std::map<SlotId, Buffer> io_;
  Plan plan_;
};

}  // namespace trine
