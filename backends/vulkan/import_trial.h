// Which memory of the host's a device takes as its own: found by trying, since drivers differ and
// do not say. Some refuse pages with a file behind them, some pages that can't be written.
#ifndef TRINE_BACKENDS_VULKAN_IMPORT_TRIAL_H_
#define TRINE_BACKENDS_VULKAN_IMPORT_TRIAL_H_

#include <cstdint>
#include <string>

#include "backends/vulkan/open_device.h"

namespace trine::vulkan {

struct ImportTrial {
  uint32_t imports = 0;  // TRINE_IMPORTS_*; 0: not tried, where nothing is imported
  std::string refusal;   // what was refused, and why; "" where nothing was
  bool settled = true;   // else memory was short, or the device went away: next time may differ
};

// Imports some pages of each kind and has the device read them. `compare`: what it read must be
// what is there; else, of a device that computes wrong anyway, it is enough that it could.
ImportTrial TryImports(OpenDevice& open, bool compare);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_IMPORT_TRIAL_H_
