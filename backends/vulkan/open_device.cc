#include "backends/vulkan/open_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "backends/vulkan/device/tuning.h"
#include "backends/vulkan/exec/pipelines.h"

namespace trine::vulkan {
namespace {

absl::StatusOr<ImportLimit> ParseImportLimit(const std::string& value) {
  if (value == "all") return ImportLimit::kAll;
  if (value == "memory") return ImportLimit::kMemory;
  if (value == "none") return ImportLimit::kNone;
  return absl::InvalidArgumentError(
      absl::StrCat("import is all, memory (no mapped files) or none; given: ", value));
}

uint64_t Nanoseconds(std::chrono::milliseconds time) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(time).count());
}

}  // namespace

absl::StatusOr<DeviceOptions> ParseDeviceOptions(const std::string& text) {
  DeviceOptions options;
  for (const absl::string_view part : absl::StrSplit(text, ';', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> option =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const std::string name(absl::StripAsciiWhitespace(option.first));
    const std::string value(absl::StripAsciiWhitespace(option.second));
    if (name.empty() || value.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("options are key=value, parted by semicolons; given: ", part));
    }
    if (HasTuning(name)) {
      options.tuning.emplace_back(name, value);
      continue;
    }
    if (name == "import") {
      const auto limit = ParseImportLimit(value);
      if (!limit.ok()) return limit.status();
      options.import = *limit;
      continue;
    }
    if (name != "timeout_ms") {
      return absl::InvalidArgumentError(
          absl::StrCat("the vulkan backend has no option called ", name));
    }
    int64_t milliseconds = 0;
    if (!absl::SimpleAtoi(value, &milliseconds) || milliseconds < 1 || milliseconds > 86'400'000) {
      return absl::InvalidArgumentError(
          absl::StrCat("timeout_ms is a number from 1 to 86400000; given: ", value));
    }
    options.timeout = std::chrono::milliseconds(milliseconds);
  }
  return options;
}

uint64_t ImportAlignment(const DeviceCaps& caps, const DeviceOptions& options) {
  // A discrete GPU would read the host's memory through the bus in every run.
  const bool may = caps.unified_memory && options.import != ImportLimit::kNone;
  return may ? caps.import_alignment : 0;
}

absl::StatusOr<ChosenTuning> TuningFor(const DeviceCaps& caps, const DeviceOptions& options) {
  ChosenTuning tuning;
  tuning.ops = ChooseTuning(caps);
  for (const auto& [name, value] : options.tuning) {
    const absl::Status status = OverrideTuning(caps, name, value, &tuning.ops);
    if (!status.ok()) return status;
  }
  tuning.products = ChooseProductTuning(caps, tuning.ops);
  return tuning;
}

absl::StatusOr<std::unique_ptr<OpenDevice>> OpenDevice::Create(const Instance& instance,
                                                               const FoundDevice& found,
                                                               const DeviceOptions& options) {
  const auto tuning = TuningFor(found.caps, options);
  if (!tuning.ok()) return tuning.status();
  auto open = std::make_unique<OpenDevice>();
  open->options = options;
  open->tuning = tuning->ops;
  open->products = tuning->products;
  auto device = Device::Create(instance, found);
  if (!device.ok()) return device.status();
  open->device = *std::move(device);
  open->memory = std::make_unique<Memory>(*open->device);
  auto pipelines = Pipelines::Create(*open->device, DefaultPipelineCachePath(found.caps));
  if (!pipelines.ok()) return pipelines.status();
  open->pipelines = *std::move(pipelines);
  auto queue = Queue::Create(*open->device);
  if (!queue.ok()) return queue.status();
  open->queue = *std::move(queue);
  open->transfer =
      std::make_unique<Transfer>(*open->device, *open->memory, *open->pipelines, *open->queue,
                                 open->tuning, Nanoseconds(options.timeout));
  return open;
}

OpenDevice::~OpenDevice() {
  if (pipelines != nullptr) pipelines->Save().IgnoreError();
}

uint64_t OpenDevice::ImportAlignment() const { return vulkan::ImportAlignment(caps(), options); }

absl::StatusOr<Allocation> OpenDevice::Import(void* host, uint64_t bytes, bool read_only) {
  const bool may =
      options.import == ImportLimit::kAll || (options.import == ImportLimit::kMemory && !read_only);
  if (!may) return absl::UnimplementedError("the option import keeps it from being imported");
  if (!caps().unified_memory) {
    return absl::UnimplementedError(
        absl::StrCat(caps().name, " has memory of its own and imports none"));
  }
  return memory->Import(host, bytes);
}

absl::StatusOr<OpenDevice::Submitted> OpenDevice::Submit(const Recording& recording,
                                                         std::chrono::milliseconds timeout) {
  const auto point = queue->Submit(recording);
  if (!point.ok()) return point.status();
  return Submitted{*point, std::chrono::steady_clock::now(), timeout};
}

absl::Status OpenDevice::Wait(const Submitted& work, uint64_t wait_ns) {
  const auto passed = std::chrono::steady_clock::now() - work.begin;
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(work.timeout - passed);
  const auto most = static_cast<uint64_t>(std::max<int64_t>(left.count(), 0));
  const absl::Status status = queue->Wait(work.point, std::min(wait_ns, most));
  if (absl::IsDeadlineExceeded(status) && wait_ns < most) return status;
  return AfterWait(status, work.timeout);
}

absl::Status OpenDevice::RunAndWait(const Recording& recording, std::chrono::milliseconds timeout) {
  const auto point = queue->Submit(recording);
  if (!point.ok()) return point.status();
  return AfterWait(queue->Wait(*point, Nanoseconds(timeout)), timeout);
}

absl::Status OpenDevice::AfterWait(const absl::Status& status, std::chrono::milliseconds timeout) {
  if (status.ok() || absl::IsUnavailable(status)) return status;
  // The work may still be in flight, so its memory must not be freed.
  if (!absl::IsDeadlineExceeded(status)) return device->Abandon(std::string(status.message()));
  return device->Abandon(
      absl::StrCat("the device has not finished its work in ", timeout.count(), " ms"));
}

}  // namespace trine::vulkan
