// Plans on the device: recorded for the parameters of a run, replayed as long as they stay the
// same.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "backends/vulkan/backend.h"
#include "backends/vulkan/exec/recorder.h"

namespace trine::vulkan {
namespace {

using backends::RunKey;

// Returns the binding of an operand. It begins at the last possible start at or before the tensor.
Binding BindingOf(const OpRun::Operand& operand, Place place, uint64_t alignment, bool reads,
                  bool writes) {
  const Allocation& allocation = place.buffer->memory;
  const uint64_t begin = place.offset / alignment * alignment + operand.offset;
  const uint64_t bytes = std::min(operand.bytes, allocation.bytes() - begin);
  const Access access = reads && writes ? Access::kReadWrite
                        : writes        ? Access::kWrite
                                        : Access::kRead;
  return {allocation.range().Part(begin, bytes), access};
}

absl::StatusOr<std::unique_ptr<Recording>> Record(const trine_plan& plan, const RunKey& key) {
  const trine_device& device = *plan.device;
  OpenDevice& open = *device.open;
  const uint64_t alignment = BindingAlignment(*device.choices.caps);
  std::vector<Place> places;
  Misalignment misaligned;
  for (const trine_tensor& t : plan.graph.tensors) {
    const Place place = plan.places.PlaceOf(plan.graph, t, key.Alternates());
    places.push_back(place);
    misaligned.push_back(static_cast<uint32_t>(place.offset % alignment));
  }
  const OpRuns maker(device.choices, plan.graph, plan.scratch, misaligned);
  Recorder recorder(*open.device, *open.pipelines, open.tuning, {key.timed});
  for (const OpGroup& group : plan.groups) {
    std::vector<OpRun> runs;
    const std::string why = maker.Add(group, key.params.data(), &runs);
    if (!why.empty()) return absl::InternalError(absl::StrCat("op ", group.first, ": ", why));
    for (const OpRun& run : runs) {
      if (std::count(run.run.groups.begin(), run.run.groups.end(), 0u) != 0) continue;
      Dispatch dispatch;
      dispatch.shader = run.run.shader;
      dispatch.constants = run.run.constants;
      dispatch.push = std::as_bytes(std::span(run.run.push));
      dispatch.subgroup_size = run.run.subgroup_size;
      dispatch.groups = run.run.groups;
      dispatch.operations = run.operations;
      dispatch.label = run.label;
      for (uint32_t b = 0; b < run.operands.size(); ++b) {
        const OpRun::Operand& operand = run.operands[b];
        const Place place =
            operand.tensor == kScratchOperand ? plan.scratch_place : places[operand.tensor];
        if (place == Place{}) return absl::InternalError("an operand of an op is not bound");
        dispatch.buffers.push_back(BindingOf(operand, place, alignment,
                                             (run.run.shader->reads >> b & 1) != 0,
                                             (run.run.shader->writes >> b & 1) != 0));
      }
      const absl::Status status = recorder.Add(dispatch);
      if (!status.ok()) return status;
    }
  }
  return recorder.Finish();
}

absl::StatusOr<const Recording*> RecordingFor(trine_plan* plan, RunKey key) {
  if (const Recording* kept = plan->recordings.Find(key)) return kept;
  auto recording = Record(*plan, key);
  if (!recording.ok()) return recording.status();
  if (const auto unused = plan->recordings.MakeRoom()) {
    // The device may still run it.
    const absl::Status status = plan->device->open->Wait(plan->last, UINT64_MAX);
    if (!status.ok()) return status;
  }
  return plan->recordings.Add(std::move(key), *std::move(recording));
}

absl::Status RunNow(trine_plan* plan, const trine_run_args& args) {
  if (absl::Status status = plan->device->Health(); !status.ok()) return status;
  const trine_host& host = *plan->device->backend->host;
  // A device without timestamps can't measure ops.
  const bool timed = sdk::WantsOpTimes(host) && plan->device->choices.caps->timestamp_bits != 0;
  const auto recording = RecordingFor(plan, RunKey(plan->graph, args, timed));
  if (!recording.ok()) return recording.status();
  const absl::Status status = plan->device->open->RunAndWait(**recording);
  if (!status.ok() || !timed) return status;
  const auto times = (*recording)->Times();
  if (!times.ok()) return times.status();
  for (const StepTime& step : *times) {
    host.op_done(host.self, step.label, static_cast<uint64_t>(step.ns));
  }
  return absl::OkStatus();
}

std::vector<trine_point> SignalsOf(const trine_sync& sync) {
  std::vector<trine_point> signals;
  for (uint32_t i = 0; i < sync.n_signals; ++i) {
    signals.push_back(sdk::At(sync.signals, sync.point_stride, i));
  }
  return signals;
}

void SettleAll(const std::vector<trine_point>& signals, const absl::Status& status) {
  for (const trine_point& point : signals) {
    sdk::Settle(*point.timeline, point.value, static_cast<trine_status>(status.code()),
                std::string(status.message()));
  }
}

// A run that was submitted, and that no thread watches.
class UnwatchedRun : public sdk::UnwatchedWork {
 public:
  UnwatchedRun(OpenDevice* open, const OpenDevice::Submitted& work,
               std::vector<trine_point> signals)
      : open_(open), work_(work), signals_(std::move(signals)) {}

  bool Finish(uint64_t timeout_ns) override {
    const absl::Status status = open_->Wait(work_, timeout_ns);
    if (absl::IsDeadlineExceeded(status)) return false;
    if (!settled_.exchange(true)) SettleAll(signals_, status);
    return true;
  }

 private:
  OpenDevice* const open_;
  const OpenDevice::Submitted work_;
  const std::vector<trine_point> signals_;
  std::atomic<bool> settled_ = false;
};

// Returns whether the work may be put into the queue now: what it waits for is done, or is in the
// queue before it.
bool MayBegin(const trine_sync& sync) {
  for (uint32_t i = 0; i < sync.n_waits; ++i) {
    const trine_point point = sdk::At(sync.waits, sync.point_stride, i);
    if (point.timeline->Expects(point.value)) continue;
    if (point.timeline->Wait(point.value, 0, nullptr) != TRINE_OK) return false;
  }
  return true;
}

absl::StatusOr<OpenDevice::Submitted> SubmitNow(trine_plan* plan, const trine_run_args& args) {
  if (absl::Status status = plan->device->Health(); !status.ok()) return status;
  OpenDevice& open = *plan->device->open;
  const auto recording = RecordingFor(plan, RunKey(plan->graph, args, /*timed=*/false));
  if (!recording.ok()) return recording.status();
  return open.Submit(**recording, open.options.timeout);
}

// Submits a run. Its signals tell how it ends, also if nothing could be submitted.
void Start(trine_plan* plan, const trine_run_args& args) {
  const std::vector<trine_point> signals = SignalsOf(args.sync);
  const auto work = SubmitNow(plan, args);
  if (!work.ok()) {
    for (const trine_point& point : signals) point.timeline->FinishExpected();
    return SettleAll(signals, work.status());
  }
  plan->last = *work;
  const auto run = std::make_shared<UnwatchedRun>(plan->device->open.get(), *work, signals);
  for (const trine_point& point : signals) point.timeline->Expect(point.value, run);
}

}  // namespace
}  // namespace trine::vulkan

absl::StatusOr<uint64_t> trine_plan::Prepare(const trine_plan_desc&) {
  groups = trine::backends::GroupOps(graph, device->choices.tuning.fuse);
  scratch = trine::vulkan::ScratchOf(device->choices, graph);
  return scratch.Bytes();
}

trine_status trine_plan::Run(const trine_run_args& args, trine_error* err) {
  // Times are reported inside this call, so a timed run is waited for.
  if (args.sync.n_signals != 0 && !trine::sdk::WantsOpTimes(*device->backend->host)) {
    const trine_status checked = trine::sdk::CheckSync(args.sync, trine::backends::TimelineOf, err);
    if (checked != TRINE_OK) return checked;
    if (trine::vulkan::MayBegin(args.sync)) {
      trine::vulkan::Start(this, args);
      return TRINE_OK;
    }
  }
  return trine::sdk::SubmitSynchronously(
      args.sync, trine::backends::TimelineOf, err, [&](trine_error* own) {
        return trine::backends::Answer(own, trine::vulkan::RunNow(this, args));
      });
}
