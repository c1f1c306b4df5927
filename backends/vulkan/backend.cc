#include "backends/vulkan/backend.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "backends/vulkan/self_test.h"
#include "backends/vulkan/validation_log.h"

namespace trine::vulkan {
namespace {

FindVulkan find_vulkan = LoadVulkan;

void Log(const trine_backend& backend, int level, const std::string& message) {
  backend.host->log(backend.host->self, level, message.c_str());
}

template <size_t N>
void SetText(char (&field)[N], const std::string& text) {
  std::snprintf(field, N, "%s", text.c_str());
}

uint32_t TierOf(const DeviceCaps& caps) {
  switch (caps.kind) {
    case DeviceKind::kDiscrete:
      return TRINE_TIER_DGPU;
    case DeviceKind::kIntegrated:
    case DeviceKind::kCpu:  // stands in for one in tests
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

// Runs the device to find out. Nothing where it could not be run, which says nothing of its bits.
std::optional<Verdict> Examine(trine_backend* backend, uint32_t index, std::string* why) {
  const auto device = OpenOne(backend, index);
  if (!device.ok()) {
    *why = std::string(device.status().message());
    return std::nullopt;
  }
  const SelfTestResult result = RunSelfTest(device->get());
  if (!result.done) {
    *why = result.failure;
    return std::nullopt;
  }
  return Verdict{result.failure, TryImports(*(*device)->open, result.failure.empty())};
}

Verdict Judge(trine_backend* backend, uint32_t index) {
  const std::lock_guard<std::mutex> lock(backend->mutex);
  std::optional<Verdict>& known = backend->verdicts[index];
  if (known.has_value()) return *known;
  const DeviceCaps& caps = backend->instance->devices()[index].caps;
  if (!caps.rounds_to_nearest_even) {
    known = Verdict{"its driver does not promise to round to nearest even", {}};
    return *known;
  }
  const VerdictKey key = VerdictKeyOf(caps, backend->options);
  const std::string path = DefaultVerdictPath(caps);
  known = RecallVerdict(key, path);
  if (!known.has_value()) {
    std::string why;
    known = Examine(backend, index, &why);
    if (!known.has_value()) {  // it may be asked again
      Log(*backend, TRINE_LOG_WARNING,
          absl::StrCat("vulkan: ", caps.name, " could not be tested: ", why));
      return Verdict{why, {}};
    }
    if (known->imports.settled) RememberVerdict(key, path, *known);
  }
  if (!known->failure.empty()) {
    Log(*backend, TRINE_LOG_WARNING,
        absl::StrCat("vulkan: ", caps.name, " fails its self-test (", known->failure,
                     "); it offers fast numerics only"));
  }
  return *known;
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
    Log(*backend, TRINE_LOG_INFO, absl::StrCat("vulkan: ", global.status().message()));
    return backend;
  }
  InstanceOptions instance_options = InstanceOptionsFromEnvironment();
  if (instance_options.validate) instance_options.on_message = ValidationLogFromEnvironment();
  auto instance = Instance::Create(*global, instance_options);
  if (!instance.ok()) {
    Log(*backend, TRINE_LOG_INFO, absl::StrCat("vulkan: ", instance.status().message()));
    return backend;
  }
  backend->instance = *std::move(instance);
  backend->verdicts.resize(backend->instance->devices().size());
  const std::string none = backend->instance->NoDeviceReason();
  if (!none.empty()) Log(*backend, TRINE_LOG_INFO, absl::StrCat("vulkan: ", none));
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
  if (verdict.failure.empty()) info.numerics = TRINE_NUMERICS_EXACT;
  info.imports = verdict.imports.imports;
  SetText(info.import_refusal, verdict.imports.refusal);
  return info;
}

absl::StatusOr<std::unique_ptr<trine_device>> MakeDevice(trine_backend* backend, uint32_t index) {
  const FoundDevice& found = backend->instance->devices()[index];
  if (!found.reason.empty()) return absl::FailedPreconditionError(found.reason);
  const bool exact = Judge(backend, index).failure.empty();
  auto device = OpenOne(backend, index);
  if (device.ok()) (*device)->exact = exact;
  return device;
}

}  // namespace trine::vulkan
