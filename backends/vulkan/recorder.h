// How an op puts its work on the device: dispatches, in order, with barriers only where one needs
// what another did.
//
//   struct Push { uint32_t n; } push{n};                     // as the shader's push_constant block
//   Dispatch d;
//   d.shader = &shaders::add_f32;
//   d.constants = {256};                                     // constant_id 0: the workgroup
//   d.push = PushBytes(push);
//   d.buffers = {Read(a), Read(b), Write(y)};                // bindings 0, 1, 2 of set 0
//   d.groups = {GroupsFor(n, 256), 1, 1};
//   absl::Status status = recorder.Add(d);
//
// and, once for all ops of a plan:
//
//   auto recording = recorder.Finish();                      // kept with the plan
//   auto point = queue.Submit(**recording);                  // each run
//   absl::Status status = queue.Wait(*point, timeout_ns);
//
// What changes from run to run comes from buffers that the host writes before Submit: a shader
// reads it there, and groups_from takes the number of workgroups from there.
#ifndef TRINE_BACKENDS_VULKAN_RECORDER_H_
#define TRINE_BACKENDS_VULKAN_RECORDER_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/vulkan/hazard_tracker.h"
#include "backends/vulkan/kernel_executor.h"
#include "backends/vulkan/pipelines.h"
#include "backends/vulkan/recording.h"
#include "backends/vulkan/tuning.h"

namespace trine::vulkan {

inline Binding Read(const BufferRange& range) { return {range, Access::kRead}; }
inline Binding Write(const BufferRange& range) { return {range, Access::kWrite}; }
inline Binding ReadWrite(const BufferRange& range) { return {range, Access::kReadWrite}; }

template <class T>
std::span<const std::byte> PushBytes(const T& push) {
  return std::as_bytes(std::span<const T, 1>(&push, 1));
}

// Workgroups of `size` that cover `n` invocations.
inline uint32_t GroupsFor(uint64_t n, uint32_t size) {
  return static_cast<uint32_t>((n + size - 1) / size);
}

struct RecorderOptions {
  bool timestamps = false;  // for Recording::Times
};

// One thread at a time.
class Recorder {
 public:
  // `device`, `pipelines` and the memory that is bound outlive the recording.
  Recorder(Device& device, Pipelines& pipelines, const Tuning& tuning,
           RecorderOptions options = {});

  // Each is a step. They take effect in the order of the calls, whatever the device overlaps. After
  // one has failed all do, with the same status.
  absl::Status Add(const Dispatch& dispatch);
  absl::Status Copy(const BufferRange& from, const BufferRange& to);  // of the same size
  absl::Status Fill(const BufferRange& range, uint32_t word);         // offset and bytes of 4

  // Ends the recording; the recorder is spent. What it wrote is visible to the host when a run is
  // done.
  absl::StatusOr<std::unique_ptr<Recording>> Finish();

 private:
  absl::Status CheckDispatch(const Dispatch& dispatch) const;
  absl::Status CheckBinding(const Dispatch& dispatch, uint32_t binding) const;
  absl::Status RecordDispatch(const Dispatch& dispatch);
  absl::Status Keep(absl::Status status);  // the first failure

  // Opens a part where none is open, closes a full one before; then waits for what `uses` need in
  // `stages`.
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
  VkPipelineStageFlags used_ = 0;    // by the steps of the part
  VkPipelineStageFlags waited_ = 0;  // those that came to a stop at the last barrier
};

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_RECORDER_H_
