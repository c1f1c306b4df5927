#include "backends/vulkan/backend.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "backends/vulkan/device/messages.h"
#include "plugins/self_test/self_test.h"

namespace trine::vulkan {
namespace {

using backends::Log;
using backends::SetText;

FindVulkan find_vulkan = LoadVulkan;

uint32_t TierOf(const DeviceCaps& caps) {
  switch (caps.kind) {
    case DeviceKind::kDiscrete:
      return TRINE_TIER_DGPU;
    case DeviceKind::kIntegrated:
    case DeviceKind::kCpu:  // stands in for an integrated GPU in tests
      return TRINE_TIER_IGPU;
    default:
      return TRINE_TIER_OTHER;
  }
}

std::string UuidText(const DeviceCaps& caps) {
  std::string text;
  for (const uint8_t byte : caps.uuid) absl::StrAppendFormat(&text, "%02x", byte);
  return text;
}

absl::StatusOr<std::unique_ptr<trine_device>> OpenOne(trine_backend* backend, uint32_t index) {
  const FoundDevice& found = backend->instance->devices()[index];
  auto open = OpenDevice::Create(*backend->instance, found, backend->options);
  if (!open.ok()) return open.status();
  auto device = std::make_unique<trine_device>();
  device->backend = backend;
  device->open = *std::move(open);
  device->choices = {&device->open->caps(), device->open->tuning, device->open->products};
  return device;
}

// The most import trials of a device. A trial is repeated because an obstacle may pass, but each
// trial opens the device.
constexpr int kMostImportTrials = 3;

// Opens a device to run tests on, when it is first needed.
class Subject {
 public:
  Subject(trine_backend* backend, uint32_t index) : backend_(backend), index_(index) {}

  absl::StatusOr<trine_device*> Get() {
    if (device_ == nullptr) {
      auto device = OpenOne(backend_, index_);
      if (!device.ok()) return device.status();
      device_ = *std::move(device);
    }
    return device_.get();
  }

 private:
  trine_backend* backend_;
  uint32_t index_;
  std::unique_ptr<trine_device> device_;
};

// Runs the self-test. Returns nullopt if it could not be run, which says nothing about exactness.
std::optional<Verdict> TestNumerics(const trine_backend& backend, Subject* subject,
                                    std::string* why) {
  const auto device = subject->Get();
  if (!device.ok()) {
    *why = std::string(device.status().message());
    return std::nullopt;
  }
  const self_test::Result result =
      self_test::Run(Table(), *device, {}, [&](const std::string& name) {
        Log(*backend.host, TRINE_LOG_DEBUG, absl::StrCat("vulkan: testing ", name));
      });
  if (!result.could_run) {
    *why = result.failure;
    return std::nullopt;
  }
  return Verdict{result.failure, {}};
}

// Returns whether another trial may find out more about imports.
bool MayTryImports(const trine_backend& backend, const DeviceCaps& caps,
                   const trine_backend::Known& known) {
  return !known.verdict->imports.settled() && known.import_trials < kMostImportTrials &&
         ImportAlignment(caps, backend.options) != 0;
}

Verdict Judge(trine_backend* backend, uint32_t index) {
  const std::lock_guard<std::mutex> lock(backend->mutex);
  const DeviceCaps& caps = backend->instance->devices()[index].caps;
  if (!caps.rounds_to_nearest_even) {
    return Verdict{"the driver does not promise to round to nearest even", {}};
  }
  trine_backend::Known& known = backend->known[index];
  if (known.verdict.has_value() && !MayTryImports(*backend, caps, known)) return *known.verdict;
  const VerdictKey key = VerdictKeyOf(caps, backend->options);
  const std::string path = DefaultVerdictPath(caps, key);
  Subject subject(backend, index);
  bool is_new = false;
  if (!known.verdict.has_value()) {
    known.verdict = RecallVerdict(key, path);
    if (!known.verdict.has_value()) {
      std::string why;
      known.verdict = TestNumerics(*backend, &subject, &why);
      if (!known.verdict.has_value()) {  // a later call may test again
        Log(*backend->host, TRINE_LOG_WARNING,
            absl::StrCat("vulkan: ", caps.name, " could not be tested: ", why));
        return Verdict{why, {}};
      }
      is_new = true;
    }
    if (!known.verdict->failure.empty()) {
      Log(*backend->host, TRINE_LOG_WARNING,
          absl::StrCat("vulkan: ", caps.name, " fails its self-test (", known.verdict->failure,
                       "); it offers fast numerics only"));
    }
  }
  if (MayTryImports(*backend, caps, known)) {
    ++known.import_trials;
    if (const auto device = subject.Get(); device.ok()) {
      TryImports(*(*device)->open, known.verdict->failure.empty(), &known.verdict->imports);
      is_new = true;
    }
  }
  if (is_new) RememberVerdict(key, path, *known.verdict);
  return *known.verdict;
}

}  // namespace

void FindVulkanBy(FindVulkan find) { find_vulkan = find; }

absl::StatusOr<std::unique_ptr<trine_backend>> MakeBackend(const trine_host* host,
                                                           const std::string& options) {
  const char* tuning = std::getenv("TRINE_VULKAN_TUNING");
  auto parsed = ParseDeviceOptions(absl::StrCat(tuning != nullptr ? tuning : "", ";", options));
  if (!parsed.ok()) return parsed.status();
  auto backend = std::make_unique<trine_backend>();
  backend->host = host;
  backend->options = *std::move(parsed);
  const auto global = find_vulkan();
  if (!global.ok()) {
    Log(*backend->host, TRINE_LOG_INFO, absl::StrCat("vulkan: ", global.status().message()));
    return backend;
  }
  InstanceOptions instance_options = InstanceOptionsFromEnvironment();
  if (instance_options.validate) instance_options.on_message = ValidationLogFromEnvironment();
  auto instance = Instance::Create(*global, instance_options);
  if (!instance.ok()) {
    Log(*backend->host, TRINE_LOG_INFO, absl::StrCat("vulkan: ", instance.status().message()));
    return backend;
  }
  backend->instance = *std::move(instance);
  backend->known.resize(backend->instance->devices().size());
  const std::string none = backend->instance->NoDeviceReason();
  if (!none.empty()) Log(*backend->host, TRINE_LOG_INFO, absl::StrCat("vulkan: ", none));
  return backend;
}

uint32_t CountDevices(const trine_backend& backend) {
  return backend.instance == nullptr ? 0
                                     : static_cast<uint32_t>(backend.instance->devices().size());
}

trine_device_info DescribeDevice(trine_backend* backend, uint32_t index) {
  const FoundDevice& found = backend->instance->devices()[index];
  const DeviceCaps& caps = found.caps;
  trine_device_info info{};
  info.tier = TierOf(caps);
  info.flags |= TRINE_DEVICE_ASYNC;
  if (caps.unified_memory) info.flags |= TRINE_DEVICE_UNIFIED_MEMORY;
  if (caps.kind == DeviceKind::kCpu) info.flags |= TRINE_DEVICE_SOFTWARE;
  info.numerics = TRINE_NUMERICS_FAST;
  info.memory_total = caps.HeapBytes();
  info.memory_free = std::min(info.memory_total, found.heaps->FreeBytes());
  info.max_allocation_bytes = caps.max_allocation;
  info.buffer_alignment = static_cast<uint32_t>(BufferAlignment(caps));
  info.import_alignment = static_cast<uint32_t>(ImportAlignment(caps, backend->options));
  std::copy(caps.uuid.begin(), caps.uuid.end(), info.uuid);
  SetText(info.pci_id, caps.pci_id);
  SetText(info.name, caps.name);
  SetText(info.arch, ArchitectureName(caps.architecture));
  SetText(info.driver, caps.driver);
  const std::string own = absl::StrCat("vulkan-", UuidText(caps));
  SetText(info.memory_pool, caps.unified_memory ? "system" : own);
  SetText(info.bandwidth_domain, caps.unified_memory ? "system" : own);
  if (!found.reason.empty()) {
    info.flags |= TRINE_DEVICE_UNUSABLE;
    SetText(info.reason, found.reason);
    return info;
  }
  const Verdict verdict = Judge(backend, index);
  if (verdict.failure.empty()) {
    info.numerics = TRINE_NUMERICS_EXACT;
  } else {
    SetText(info.reason, "self-test: " + verdict.failure);
  }
  info.imports = verdict.imports.Flags();
  SetText(info.import_refusal, verdict.imports.Refusal());
  return info;
}

absl::StatusOr<std::unique_ptr<trine_device>> MakeDevice(trine_backend* backend, uint32_t index) {
  const FoundDevice& found = backend->instance->devices()[index];
  if (!found.reason.empty()) return absl::FailedPreconditionError(found.reason);
  Verdict verdict = Judge(backend, index);
  auto device = OpenOne(backend, index);
  if (!device.ok()) return device;
  (*device)->exact = verdict.failure.empty();
  (*device)->imports = std::move(verdict.imports);
  return device;
}

const trine_plugin& Table() {
  using Open = backends::OpenCalls<MakeBackend, CountDevices, DescribeDevice, MakeDevice>;
  static constexpr trine_plugin kTable =
      backends::TableOf<Open, backends::BufferCalls<>, backends::PlanCalls<>,
                        backends::LayoutCalls<kPackedLayout>>("vulkan", TRINE_VERSION);
  return kTable;
}

}  // namespace trine::vulkan
