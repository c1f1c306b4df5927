#include "detect/gpu.h"

#include <iterator>
#include <utility>

namespace trine::detect {

const char* GpuKindName(GpuKind kind) {
  switch (kind) {
    case GpuKind::kIntegrated:
      return "integrated";
    case GpuKind::kDiscrete:
      return "discrete";
    case GpuKind::kOther:
      break;
  }
  return "other";
}

std::vector<GpuInfo> ReadGpus(const FileRoot& root, Notes* notes) {
  std::vector<GpuInfo> gpus = ReadPciGpus(root, notes);
  std::vector<GpuInfo> platform = ReadPlatformGpus(root);
  for (const GpuInfo& gpu : platform) {
    if (!gpu.counted) {
      AddNote(notes, "gpu " + gpu.device_path + " (" + gpu.vendor +
                         "): not counted: " + gpu.counted_reason);
    }
  }
  gpus.insert(gpus.end(), std::make_move_iterator(platform.begin()),
              std::make_move_iterator(platform.end()));
  return gpus;
}

}  // namespace trine::detect
