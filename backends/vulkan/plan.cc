// Plans on the device: recorded for the parameters of a run, replayed as long as they stay the
// same.
#include <algorithm>
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

// A position in a buffer.
struct Place {
  const trine_buffer* buffer = nullptr;
  uint64_t offset = 0;

  Place operator+(uint64_t bytes) const { return {buffer, offset + bytes}; }
  bool operator==(const Place&) const = default;
};

Place PlaceOfSpan(const trine_span& span) {
  if (span.buffer == nullptr || !span.buffer->InRange(span.offset, span.bytes)) return {};
  return {span.buffer, span.offset};
}

// Returns why the device can't use a span that is in range, or "" if it can.
std::string WhyNotSpan(const trine_device& device, const trine_span& span, bool written) {
  if (span.buffer == nullptr) return "";
  if (span.buffer->device != &device) return "is in a buffer of another device";
  const uint64_t alignment = BufferAlignment(*device.choices.caps);
  if (span.offset % alignment != 0) {
    return absl::StrCat("begins at ", span.offset, ", which is no multiple of ", alignment);
  }
  return written && span.buffer->read_only ? "can't be written" : "";
}

}  // namespace
}  // namespace trine::vulkan

struct trine_plan {
  trine_device* device = nullptr;
  trine::sdk::Graph graph;
  trine::sdk::PlanPlaces<trine::vulkan::Place> places;
  std::vector<trine::vulkan::OpGroup> groups;  // the graph's ops
  trine::vulkan::RunScratch scratch;
  trine::vulkan::Place scratch_place;  // after the TEMP slots
  trine::backends::KeptRecordings<trine::vulkan::Recording> recordings;
};

namespace trine::vulkan {
namespace {

auto RefusalOf(const trine_device& device) {
  return
      [&device](const sdk::Graph& graph, size_t op) { return WhyNotOp(device.choices, graph, op); };
}

// Returns where the runs' own scratch begins, which is after the TEMP slots.
uint64_t OwnScratchOffset(const trine_device& device, const sdk::Graph& graph) {
  const uint64_t alignment = BindingAlignment(*device.choices.caps);
  return RoundUp(sdk::LayOutScratch(graph, nullptr), alignment);
}

// Returns the binding of an operand. It begins at the last possible start at or before the tensor.
Binding BindingOf(const OpRun::Operand& operand, Place place, uint64_t alignment, bool reads,
                  bool writes) {
  const Allocation& allocation = place.buffer->allocation;
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
  plan->recordings.MakeRoom();
  return plan->recordings.Add(std::move(key), *std::move(recording));
}

absl::Status Run(trine_plan* plan, const trine_run_args& args) {
  if (absl::Status status = plan->device->open->device->Health(); !status.ok()) return status;
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

}  // namespace

trine_status OpQuery(trine_device* device, const trine_graph* graph, uint32_t op, const int64_t*,
                     trine_op_support* out, trine_error* err) {
  const trine_status status = device->Health(err);
  if (status != TRINE_OK) return status;
  return sdk::AnswerOpQuery(graph, op, device->Support(), RefusalOf(*device), out, err);
}

trine_status PlanQuery(trine_device* device, const trine_graph* given, trine_plan_info* out,
                       trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    trine_status status = device->Health(err);
    if (status != TRINE_OK) return status;
    sdk::Graph graph;
    status = sdk::AcceptGraph(given, device->Support(), RefusalOf(*device), &graph, err);
    if (status != TRINE_OK) return status;
    trine_plan_info info{};
    info.scratch_alignment = static_cast<uint32_t>(BufferAlignment(*device->choices.caps));
    const uint64_t own = ScratchOf(device->choices, graph).Bytes();
    info.scratch_bytes =
        own == 0 ? sdk::LayOutScratch(graph, nullptr) : OwnScratchOffset(*device, graph) + own;
    sdk::WriteOut(out, info);
    return TRINE_OK;
  });
}

trine_status PlanCreate(trine_device* device, const trine_plan_desc* given, trine_plan** out,
                        trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    trine_status status = device->Health(err);
    if (status != TRINE_OK) return status;
    const trine_plan_desc desc = sdk::ReadIn(given);
    auto plan = std::make_unique<trine_plan>();
    plan->device = device;
    status = sdk::AcceptGraph(desc.graph, device->Support(), RefusalOf(*device), &plan->graph, err);
    if (status != TRINE_OK) return status;
    status = plan->places.Bind(plan->graph, desc, PlaceOfSpan, err);
    const auto why_not = [&](const trine_span& span, bool written) {
      return WhyNotSpan(*device, span, written);
    };
    if (status == TRINE_OK) status = backends::CheckSpans(plan->graph, desc, why_not, err);
    if (status != TRINE_OK) return status;
    plan->groups = backends::GroupOps(plan->graph, device->choices.tuning.fuse);
    plan->scratch = ScratchOf(device->choices, plan->graph);
    if (plan->scratch.Bytes() != 0) {
      const Place scratch = PlaceOfSpan(desc.scratch);
      const uint64_t offset = OwnScratchOffset(*device, plan->graph);
      if (scratch == Place{} || desc.scratch.bytes < offset + plan->scratch.Bytes()) {
        return Fail(err, TRINE_INVALID_ARGUMENT, "the scratch is missing or too small");
      }
      plan->scratch_place = scratch + offset;
    }
    *out = plan.release();
    return TRINE_OK;
  });
}

trine_status PlanRun(trine_plan* plan, const trine_run_args* given, trine_error* err) {
  const trine_run_args args = sdk::ReadIn(given);
  return sdk::Guard(err, [&]() -> trine_status {
    const trine_status status = sdk::CheckRun(plan->graph, args, err);
    if (status != TRINE_OK) return status;
    return sdk::SubmitSynchronously(args.sync, backends::TimelineOf, err,
                                    [&](trine_error* own) { return Answer(own, Run(plan, args)); });
  });
}

void PlanDestroy(trine_plan* plan) { delete plan; }

}  // namespace trine::vulkan
