// Records the dispatches of ops, in order, with barriers only where a dispatch needs the results of
// another.
//
//   struct Push { uint32_t n; } push{n};                     // as the shader's push_constant block
//   Dispatch d;
//   d.shader = &shaders::add_f32;
//   d.constants = {256};                                     // constant_id 0: the workgroup
//   d.push = std::as_bytes(std::span(&push, 1));
//   d.buffers = {Read(a), Read(b), Write(y)};                // bindings 0, 1, 2 of set 0
//   d.groups = {CappedGroups(n, 256), 1, 1};
//   absl::Status status = recorder.Add(d);
//
// and, once for all ops of a plan:
//
//   auto recording = recorder.Finish();                      // kept with the plan
//   auto point = queue.Submit(**recording);                  // each run
//   absl::Status status = queue.Wait(*point, timeout_ns);
//
// Values that change from run to run are in buffers that the host writes before Submit.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/vulkan/device/tuning.h"
#include "backends/vulkan/exec/kernel_executor.h"
#include "backends/vulkan/exec/pipelines.h"
#include "backends/vulkan/exec/queue.h"

namespace trine::vulkan {

// Make the bindings of a dispatch.
inline Binding Read(const BufferRange& range) { return {range, Access::kRead}; }
inline Binding Write(const BufferRange& range) { return {range, Access::kWrite}; }

// Decides which work must wait for earlier work. Remembers the bytes that were read and written
// since the last barrier.
class HazardTracker {
 public:
  // Returns whether these uses touch bytes written since the last barrier, or write bytes read
  // since then.
  bool NeedsBarrier(std::span<const Binding> uses) const;
  void Note(std::span<const Binding> uses);
  void Barrier();  // all noted work is done

 private:
  struct Range {
    uint64_t begin, end;
  };
  struct Uses {
    std::vector<Range> reads, writes;
  };
  static bool Overlaps(const std::vector<Range>& ranges, const BufferRange& range);

  std::map<VkBuffer, Uses> uses_;
};

struct RecorderOptions {
  bool timestamps = false;  // for Recording::Times
};

// Makes one recording. One thread at a time.
class Recorder {
 public:
  // `device`, `pipelines` and all bound memory must outlive the recording.
  Recorder(Device& device, Pipelines& pipelines, const Tuning& tuning,
           RecorderOptions options = {});

  // Each call records one step. Steps take effect in the order of the calls, even if the device
  // overlaps them. After a failure, all later calls return the same status.
  absl::Status Add(const Dispatch& dispatch);
  absl::Status Copy(const BufferRange& from, const BufferRange& to);  // both of the same size

  // Ends the recording; the recorder can't be used again. When a run of the recording is done, the
  // host sees everything that the run wrote.
  absl::StatusOr<std::unique_ptr<Recording>> Finish();

 private:
  absl::Status CheckDispatch(const Dispatch& dispatch) const;
  absl::Status CheckBinding(const Dispatch& dispatch, uint32_t binding) const;
  absl::Status RecordDispatch(const Dispatch& dispatch);
  absl::Status Keep(absl::Status status);  // keeps the first failure

  // Closes the part if it is full and opens one if none is open. Then makes `stages` wait for the
  // work that `uses` depend on.
  absl::Status BeginStep(std::span<const Binding> uses, VkPipelineStageFlags stages,
                         uint64_t operations);
  void EndStep(const char* label);
  absl::Status BeginPart();
  absl::Status EndPart();
  void Barrier(VkPipelineStageFlags from, VkPipelineStageFlags to);

  Device& device_;
  Tuning tuning_;
  RecorderOptions options_;
  absl::Status status_;
  std::unique_ptr<Recording> recording_;
  HazardTracker hazards_;
  bool part_open_ = false;
  uint64_t part_operations_ = 0;
  VkPipelineStageFlags used_ = 0;    // stages that the part's steps used
  VkPipelineStageFlags waited_ = 0;  // stages that the last barrier made wait
};

}  // namespace trine::vulkan
