#include "backends/vulkan/device_choice.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace trine::vulkan {
namespace {

// Lower is better. Mesa's drivers for AMD and Intel are the ones most is known of.
int DriverRank(const DeviceCaps& device) {
  switch (device.driver_id) {
    case VK_DRIVER_ID_MESA_RADV:
    case VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA:
    case VK_DRIVER_ID_NVIDIA_PROPRIETARY:
      return 0;
    case VK_DRIVER_ID_AMD_OPEN_SOURCE:
      return 1;
    default:
      return 2;
  }
}

bool SameChip(const DeviceCaps& a, const DeviceCaps& b) {
  const bool known = std::any_of(a.uuid.begin(), a.uuid.end(), [](uint8_t x) { return x != 0; });
  return known && a.uuid == b.uuid;
}

}  // namespace

std::vector<std::string> ReasonsAgainst(const std::vector<DeviceCaps>& devices, bool allow_cpu) {
  std::vector<std::string> reasons(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    reasons[i] = devices[i].unusable;
    if (reasons[i].empty() && devices[i].kind == DeviceKind::kCpu && !allow_cpu) {
      reasons[i] =
          absl::StrCat(devices[i].name, " runs on the CPU; TRINE_VULKAN_ALLOW_CPU=1 admits it");
    }
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    for (size_t j = 0; j < devices.size() && reasons[i].empty(); ++j) {
      if (i == j || !reasons[j].empty() || !SameChip(devices[i], devices[j])) continue;
      const int mine = DriverRank(devices[i]), other = DriverRank(devices[j]);
      if (other < mine || (other == mine && j < i)) {
        reasons[i] =
            absl::StrCat(devices[i].name, " under ", devices[i].driver, " is the same chip as ",
                         devices[j].name, " under ", devices[j].driver);
      }
    }
  }
  return reasons;
}

}  // namespace trine::vulkan
