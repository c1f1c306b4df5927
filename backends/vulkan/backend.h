// The backend and its devices, as the ABI shows them.
#ifndef TRINE_BACKENDS_VULKAN_BACKEND_H_
#define TRINE_BACKENDS_VULKAN_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "backends/vulkan/handles.h"
#include "backends/vulkan/loader.h"

namespace trine::vulkan {

// How MakeBackend finds Vulkan: LoadVulkan, but for tests with a driver of their own. Not while a
// backend is being opened.
using FindVulkan = absl::StatusOr<GlobalTable> (*)();
void FindVulkanBy(FindVulkan find);

// No driver and no device are no failure: there are none to show then. `options` is as in
// open_device.h; TRINE_VULKAN_TUNING, of the same form, comes before them.
absl::StatusOr<std::unique_ptr<trine_backend>> MakeBackend(const trine_host* host,
                                                           const std::string& options);

uint32_t CountDevices(const trine_backend& backend);

// Whether a device is exact, and what it imports, is found by running it, the first time it is
// asked for and nothing is remembered (verdicts.h).
trine_device_info DescribeDevice(trine_backend* backend, uint32_t index);

absl::StatusOr<std::unique_ptr<trine_device>> MakeDevice(trine_backend* backend, uint32_t index);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_BACKEND_H_
