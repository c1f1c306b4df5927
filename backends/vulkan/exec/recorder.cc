#include "backends/vulkan/exec/recorder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine::vulkan {
namespace {

// The pipeline stages in which a step works.
constexpr VkPipelineStageFlags kShader = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkPipelineStageFlags kAll = kShader | kTransfer;

VkAccessFlags WritesOf(VkPipelineStageFlags stages) {
  VkAccessFlags writes = 0;
  if ((stages & kShader) != 0) writes |= VK_ACCESS_SHADER_WRITE_BIT;
  if ((stages & kTransfer) != 0) writes |= VK_ACCESS_TRANSFER_WRITE_BIT;
  return writes;
}

VkAccessFlags ReadsOf(VkPipelineStageFlags stages) {
  VkAccessFlags reads = 0;
  if ((stages & kShader) != 0) reads |= VK_ACCESS_SHADER_READ_BIT;
  if ((stages & kTransfer) != 0) reads |= VK_ACCESS_TRANSFER_READ_BIT;
  return reads;
}

const char* AccessName(Access access) {
  return access == Access::kRead    ? "reads"
         : access == Access::kWrite ? "writes"
                                    : "reads and writes";
}

}  // namespace

Recorder::Recorder(Device& device, Pipelines& pipelines, const Tuning& tuning,
                   RecorderOptions options)
    : device_(device),
      tuning_(tuning),
      options_(options),
      recording_(new Recording(device, MakeKernelExecutor(tuning.executor, device, pipelines))) {
  if (options_.timestamps && device_.caps().timestamp_bits == 0) {
    status_ = absl::UnimplementedError(absl::StrCat(device_.caps().name, " has no timestamps"));
    return;
  }
  auto info = Info<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  info.queueFamilyIndex = device_.caps().queue_family;
  status_ = device_.Check(
      device_.functions().CreateCommandPool(device_.handle(), &info, nullptr, &recording_->pool_),
      "no command pool could be made");
}

absl::Status Recorder::Keep(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return status_;
}

absl::Status Recorder::CheckBinding(const Dispatch& dispatch, uint32_t binding) const {
  const Binding& given = dispatch.buffers[binding];
  const DeviceCaps& caps = device_.caps();
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat("shader ", dispatch.shader->name, ", binding ", binding, ": ", what));
  };
  const uint32_t declared =
      (dispatch.shader->reads >> binding & 1) + (dispatch.shader->writes >> binding & 1) * 2;
  if (given.access != static_cast<Access>(declared)) {
    return error(absl::StrCat("the shader ", AccessName(static_cast<Access>(declared)),
                              " it, the dispatch ", AccessName(given.access), " it"));
  }
  if (given.range.buffer == VK_NULL_HANDLE || given.range.bytes == 0) return error("no memory");
  if (given.range.offset % caps.storage_alignment != 0) {
    return error(
        absl::StrCat("offset ", given.range.offset, " is no multiple of ", caps.storage_alignment));
  }
  if (given.range.bytes > caps.max_storage_range) {
    return error(absl::StrCat(given.range.bytes, " bytes; ", caps.name, " binds at most ",
                              caps.max_storage_range));
  }
  return absl::OkStatus();
}

absl::Status Recorder::CheckDispatch(const Dispatch& dispatch) const {
  if (dispatch.shader == nullptr) return absl::InvalidArgumentError("a dispatch without a shader");
  const Shader& shader = *dispatch.shader;
  if (dispatch.buffers.size() != shader.binding_count) {
    return absl::InvalidArgumentError(absl::StrCat("shader ", shader.name, " has ",
                                                   shader.binding_count, " buffers, not ",
                                                   dispatch.buffers.size()));
  }
  if (dispatch.push.size() != shader.push_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("shader ", shader.name, " has ", shader.push_bytes,
                     " bytes of push constants, not ", dispatch.push.size()));
  }
  for (uint32_t i = 0; i < shader.binding_count; ++i) {
    if (absl::Status status = CheckBinding(dispatch, i); !status.ok()) return status;
  }
  const DeviceCaps& caps = device_.caps();
  for (int i = 0; i < 3; ++i) {
    if (dispatch.groups[i] > caps.max_workgroups[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("shader ", shader.name, ": ", dispatch.groups[i], " workgroups along axis ",
                       i, "; ", caps.name, " has at most ", caps.max_workgroups[i]));
    }
  }
  return absl::OkStatus();
}

void Recorder::Barrier(VkPipelineStageFlags from, VkPipelineStageFlags to) {
  auto barrier = Info<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  barrier.srcAccessMask = WritesOf(from);
  barrier.dstAccessMask = ReadsOf(to) | WritesOf(to);
  device_.functions().CmdPipelineBarrier(recording_->parts_.back().commands, from, to, 0, 1,
                                         &barrier, 0, nullptr, 0, nullptr);
  hazards_.Barrier();
  waited_ = to;
}

absl::Status Recorder::BeginPart() {
  const DeviceTable& vk = device_.functions();
  Recording::Part part;
  auto allocate = Info<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  allocate.commandPool = recording_->pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  absl::Status status =
      device_.Check(vk.AllocateCommandBuffers(device_.handle(), &allocate, &part.commands),
                    "no command buffer could be made");
  if (!status.ok()) return status;
  const uint32_t queries = tuning_.submit_dispatches + 1;
  if (options_.timestamps) {
    auto info = Info<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = queries;
    status = device_.Check(vk.CreateQueryPool(device_.handle(), &info, nullptr, &part.queries),
                           "no room for timestamps could be made");
    if (!status.ok()) return status;
  }
  auto begin = Info<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;  // a run may overlap the previous one
  recording_->parts_.push_back(part);
  status = device_.Check(vk.BeginCommandBuffer(part.commands, &begin),
                         "a command buffer could not be begun");
  if (!status.ok()) return status;
  part_open_ = true;
  part_operations_ = 0;
  recording_->executor_->Begin(part.commands);
  used_ = 0;
  // for all earlier submissions, the last run of this one included
  Barrier(kAll, kAll);
  if (options_.timestamps) {
    vk.CmdResetQueryPool(part.commands, part.queries, 0, queries);
    vk.CmdWriteTimestamp(part.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, part.queries, 0);
  }
  return absl::OkStatus();
}

absl::Status Recorder::EndPart() {
  part_open_ = false;
  return device_.Check(device_.functions().EndCommandBuffer(recording_->parts_.back().commands),
                       "a command buffer could not be ended");
}

absl::Status Recorder::BeginStep(std::span<const Binding> uses, VkPipelineStageFlags stages,
                                 uint64_t operations) {
  if (part_open_ && (recording_->parts_.back().labels.size() >= tuning_.submit_dispatches ||
                     part_operations_ + operations > tuning_.submit_operations)) {
    if (absl::Status status = EndPart(); !status.ok()) return status;
  }
  if (!part_open_) {
    if (absl::Status status = BeginPart(); !status.ok()) return status;
  }
  part_operations_ += operations;
  // Barriers between shaders cover shaders only, because with copies included a GPU would wait for
  // more of its units. So a step in another stage needs its own barrier, for all earlier work.
  if (hazards_.NeedsBarrier(uses) || (stages & ~waited_) != 0) {
    Barrier(used_, stages);
    ++recording_->barriers_;
  }
  used_ |= stages;
  hazards_.Note(uses);
  return absl::OkStatus();
}

void Recorder::EndStep(const char* label) {
  Recording::Part& part = recording_->parts_.back();
  part.labels.push_back(label);
  if (!options_.timestamps) return;
  device_.functions().CmdWriteTimestamp(part.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                                        part.queries, static_cast<uint32_t>(part.labels.size()));
}

absl::Status Recorder::RecordDispatch(const Dispatch& dispatch) {
  if (absl::Status status = CheckDispatch(dispatch); !status.ok()) return status;
  const auto& [x, y, z] = dispatch.groups;
  if (x == 0 || y == 0 || z == 0) return absl::OkStatus();
  if (absl::Status status = recording_->executor_->Prepare(dispatch); !status.ok()) return status;
  absl::Status status = BeginStep(dispatch.buffers, kShader, dispatch.operations);
  if (!status.ok()) return status;
  recording_->executor_->Record(dispatch);
  EndStep(dispatch.label != nullptr ? dispatch.label : dispatch.shader->name);
  return absl::OkStatus();
}

absl::Status Recorder::Add(const Dispatch& dispatch) {
  return status_.ok() ? Keep(RecordDispatch(dispatch)) : status_;
}

absl::Status Recorder::Copy(const BufferRange& from, const BufferRange& to) {
  if (!status_.ok() || (from.bytes == 0 && to.bytes == 0)) return status_;
  if (from.bytes != to.bytes) {
    return Keep(absl::InvalidArgumentError(
        absl::StrCat("a copy of ", from.bytes, " bytes into ", to.bytes)));
  }
  const Binding uses[] = {Read(from), Write(to)};
  if (absl::Status status = BeginStep(uses, kTransfer, 0); !status.ok()) return Keep(status);
  const VkBufferCopy region{from.offset, to.offset, from.bytes};
  device_.functions().CmdCopyBuffer(recording_->parts_.back().commands, from.buffer, to.buffer, 1,
                                    &region);
  EndStep("copy");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Recording>> Recorder::Finish() {
  if (!status_.ok()) return status_;
  if (part_open_) {
    auto barrier = Info<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
    barrier.srcAccessMask = WritesOf(kAll);
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    device_.functions().CmdPipelineBarrier(recording_->parts_.back().commands, kAll,
                                           VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr,
                                           0, nullptr);
    if (absl::Status status = EndPart(); !status.ok()) return Keep(status);
  }
  status_ = absl::FailedPreconditionError("the recorder was finished before");
  return std::move(recording_);
}

bool HazardTracker::Overlaps(const std::vector<Range>& ranges, const BufferRange& range) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& r) {
    return r.begin < range.offset + range.bytes && range.offset < r.end;
  });
}

bool HazardTracker::NeedsBarrier(std::span<const Binding> uses) const {
  return std::any_of(uses.begin(), uses.end(), [&](const Binding& use) {
    const auto before = uses_.find(use.range.buffer);
    if (before == uses_.end()) return false;
    return Overlaps(before->second.writes, use.range) ||
           (Writes(use.access) && Overlaps(before->second.reads, use.range));
  });
}

void HazardTracker::Note(std::span<const Binding> uses) {
  for (const Binding& use : uses) {
    const Range range{use.range.offset, use.range.offset + use.range.bytes};
    Uses& of_buffer = uses_[use.range.buffer];
    // A write conflicts with every access, so a read of the same bytes need not be noted.
    (Writes(use.access) ? of_buffer.writes : of_buffer.reads).push_back(range);
  }
}

void HazardTracker::Barrier() { uses_.clear(); }

}  // namespace trine::vulkan
