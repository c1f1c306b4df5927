// Describes the machine as JSON, for `trine detect --json` and for trine_detect. docs/detect.md
// lists the JSON's members. New versions add members and remove none.
#pragma once

#include <string>

#include "dispatch/devices/inventory.h"

namespace trine {

struct MachineOptions {
  std::string root;  // as in DetectOptions; the files of another machine: plugins are not probed
  RegistryOptions registry;
};

// Detects the machine's hardware, probes all plugins in child processes, and joins both.
Inventory DescribeMachine(const MachineOptions& options);

// Returns the inventory as JSON, indented for people.
std::string MachineReportText(const Inventory& inventory);

}  // namespace trine
