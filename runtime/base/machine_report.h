// Describes the machine as JSON, for `trine detect --json` and for trine_detect. docs/detect.md
// lists the JSON's members. New versions add members and remove none.
#pragma once

#include <string>

#include "dispatch/devices/inventory.h"

namespace trine {

// Says which machine to describe.
struct MachineOptions {
  // "" or "/": the running machine. Otherwise a folder with the proc/ and sys/ of another machine,
  // which is described from these files alone: no plugins are looked for.
  std::string root;
  RegistryOptions registry;  // how plugins are found and probed
};

// Detects the machine's hardware, probes its plugins in child processes meanwhile, and joins both.
// The inventory's notes and problems say what went wrong.
Inventory DescribeMachine(const MachineOptions& options);

// Returns the inventory as JSON, indented for people.
std::string MachineReportText(const Inventory& inventory);

}  // namespace trine
