#include "backends/hip/backend.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugins/self_test/self_test.h"

namespace trine::hip {
namespace {

using backends::Log;
using backends::SetText;

absl::StatusOr<std::unique_ptr<trine_device>> OpenOne(trine_backend* backend, uint32_t index) {
  const FoundDevice& found = backend->found.devices[index];
  auto gpu = GpuDevice::Open(found.index, backend->options.wait);
  if (!gpu.ok()) return gpu.status();
  auto device = std::make_unique<trine_device>();
  device->backend = backend;
  device->gpu = *std::move(gpu);
  device->submissions = std::make_unique<Submissions>(device->gpu.get());
  device->shape = found.shape;
  if (backend->options.unit.has_value()) {
    device->shape.unit = UsableUnit(*backend->options.unit, found.arch, found.warp);
  }
  return device;
}

// Tries to import a little memory. Pages of a file are always accepted, because the host reads
// them.
trine_backend::Imports TryImports(GpuDevice* gpu) {
  const std::unique_ptr<void, decltype(&std::free)> page(
      std::aligned_alloc(kImportAlignment, kImportAlignment), &std::free);
  if (page == nullptr) return {};  // not tried
  trine_backend::Imports imports{TRINE_IMPORTS_TRIED | TRINE_IMPORTS_READ_ONLY, ""};
  const auto memory = gpu->Import(page.get(), kImportAlignment);
  if (memory.ok()) {
    imports.flags |= TRINE_IMPORTS_WRITABLE;
  } else {
    imports.refusal = std::string(memory.status().message());
  }
  return imports;
}

// Returns "" or why the device is not exact. Runs the self-test once. A test that could not be run
// says nothing about exactness, and is run again at the next call.
std::string WhyNotExact(trine_backend* backend, uint32_t index) {
  const std::lock_guard<std::mutex> lock(backend->mutex);
  std::optional<std::string>& verdict = backend->verdicts[index];
  if (verdict.has_value()) return *verdict;
  const std::string& name = backend->found.devices[index].name;
  const auto device = OpenOne(backend, index);
  if (!device.ok()) return std::string(device.status().message());
  backend->imports[index] = TryImports((*device)->gpu.get());
  const self_test::Result result =
      self_test::Run(Table(), device->get(), {}, [&](const std::string& test) {
        Log(*backend->host, TRINE_LOG_DEBUG, absl::StrCat("hip: testing ", test));
      });
  if (!result.could_run) {
    Log(*backend->host, TRINE_LOG_WARNING,
        absl::StrCat("hip: ", name, " could not be tested: ", result.failure));
    return result.failure;
  }
  verdict = result.failure;
  if (!result.failure.empty()) {
    Log(*backend->host, TRINE_LOG_WARNING,
        absl::StrCat("hip: ", name, " fails its self-test (", result.failure,
                     "); it offers fast numerics only"));
  }
  return *verdict;
}

}  // namespace
}  // namespace trine::hip

absl::StatusOr<std::shared_ptr<trine::hip::WeightStages>> trine_device::StagesFor(uint64_t bytes) {
  using trine::hip::WeightStages;
  const uint64_t usual = backend->options.stage_bytes;
  if (bytes > usual) return WeightStages::Create(gpu.get(), bytes);
  if (std::shared_ptr<WeightStages> shared = stages.lock()) return shared;
  auto made = WeightStages::Create(gpu.get(), usual);
  if (made.ok()) stages = *made;
  return made;
}

namespace trine::hip {

trine_status Submit(trine_device* device, const trine_sync& sync,
                    const std::function<absl::Status()>& run, std::function<absl::Status()> start,
                    trine_error* err, Starter starter) {
  if (sync.n_signals == 0) {
    return sdk::SubmitSynchronously(sync, backends::TimelineOf, err,
                                    [&](trine_error* own) { return backends::Answer(own, run()); });
  }
  const trine_status status = sdk::CheckSync(sync, backends::TimelineOf, err);
  if (status != TRINE_OK) return status;
  const auto points = [&](const trine_point* from, uint32_t count) {
    std::vector<SyncPoint> list;
    for (uint32_t i = 0; i < count; ++i) {
      const trine_point p = sdk::At(from, sync.point_stride, i);
      list.push_back({p.timeline, p.value});
    }
    return list;
  };
  std::vector<SyncPoint> waits = points(sync.waits, sync.n_waits);
  std::vector<SyncPoint> signals = points(sync.signals, sync.n_signals);
  if (starter == Starter::kCaller) {
    device->submissions->StartOrAdd(std::move(waits), std::move(signals), std::move(start));
  } else {
    device->submissions->Add(std::move(waits), std::move(signals), std::move(start));
  }
  return TRINE_OK;
}

absl::StatusOr<std::unique_ptr<trine_backend>> MakeBackend(const trine_host* host,
                                                           const std::string& options) {
  const char* tuning = std::getenv("TRINE_HIP_TUNING");
  auto parsed = ParseOptions(absl::StrCat(tuning != nullptr ? tuning : "", ";", options));
  if (!parsed.ok()) return parsed.status();
  auto backend = std::make_unique<trine_backend>();
  backend->host = host;
  backend->options = *std::move(parsed);
#if defined(TRINE_GPU_HOST)
  emulator::Configure(backend->options.emulator);
  emulator::Reset(backend->options.device);
#endif
  backend->found = FindDevices(DeviceChoiceFromEnvironment());
  backend->verdicts.resize(backend->found.devices.size());
  backend->imports.resize(backend->found.devices.size());
  backend->peers = std::make_unique<PeerLinks>(
      [made = backend.get()](const std::string& sentence, bool through_host) {
        Log(*made->host, through_host ? TRINE_LOG_WARNING : TRINE_LOG_INFO,
            absl::StrCat("hip: ", sentence));
      });
  if (!backend->found.none.empty()) {
    Log(*backend->host, TRINE_LOG_INFO, absl::StrCat("hip: ", backend->found.none));
  }
  return backend;
}

uint32_t CountDevices(const trine_backend& backend) {
  return static_cast<uint32_t>(backend.found.devices.size());
}

trine_device_info DescribeDevice(trine_backend* backend, uint32_t index) {
  const FoundDevice& found = backend->found.devices[index];
  trine_device_info info{};
  info.tier = found.integrated ? TRINE_TIER_IGPU : TRINE_TIER_DGPU;
  info.flags |= TRINE_DEVICE_ASYNC | TRINE_DEVICE_PEER_COPIES;
  if (kIsEmulated) info.flags |= TRINE_DEVICE_SOFTWARE;
  info.numerics = TRINE_NUMERICS_FAST;
  const FreeMemory memory = MemoryOf(found.index);
  info.memory_total = memory.total;
  info.memory_free = memory.available;
  info.buffer_alignment = kAlignment;
  SetText(info.pci_id, found.pci_id);
  SetText(info.name, found.name);
  SetText(info.arch, found.arch);
  SetText(info.driver, found.driver);
  std::string own =
      absl::StrCat("hip-", found.pci_id.empty() ? std::to_string(found.index) : found.pci_id);
  if (found.integrated) {
    own = "system";  // RAM, which other devices count, too
    info.flags |= TRINE_DEVICE_UNIFIED_MEMORY;
  } else {
    info.import_alignment = kImportAlignment;  // weights can be streamed over the bus
  }
  SetText(info.memory_pool, own);
  SetText(info.bandwidth_domain, own);
  if (!found.reason.empty()) {
    info.flags |= TRINE_DEVICE_UNUSABLE;
    SetText(info.reason, found.reason);
    return info;
  }
  if (const std::string why = WhyNotExact(backend, index); why.empty()) {
    info.numerics = TRINE_NUMERICS_EXACT;
  } else {
    SetText(info.reason, "self-test: " + why);
  }
  if (info.import_alignment != 0) {
    const std::lock_guard<std::mutex> lock(backend->mutex);
    info.imports = backend->imports[index].flags;
    SetText(info.import_refusal, backend->imports[index].refusal);
  }
  return info;
}

absl::StatusOr<std::unique_ptr<trine_device>> MakeDevice(trine_backend* backend, uint32_t index) {
  const FoundDevice& found = backend->found.devices[index];
  if (!found.reason.empty()) return absl::FailedPreconditionError(found.reason);
  const bool exact = WhyNotExact(backend, index).empty();
  auto device = OpenOne(backend, index);
  if (device.ok()) (*device)->exact = exact;
  return device;
}

const trine_plugin& Table() {
  using Open = backends::OpenCalls<MakeBackend, CountDevices, DescribeDevice, MakeDevice>;
  static constexpr trine_plugin kTable =
      backends::TableOf<Open, backends::BufferCalls<>, backends::PlanCalls<>,
                        backends::LayoutCalls<kPackedLayout>>(kPluginName, TRINE_VERSION);
  return kTable;
}

}  // namespace trine::hip
