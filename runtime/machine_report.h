// An inventory as JSON: what `trine detect --json` prints and trine_detect returns. The members are
// described in docs/detect.md and only ever added to.
#ifndef TRINE_RUNTIME_MACHINE_REPORT_H_
#define TRINE_RUNTIME_MACHINE_REPORT_H_

#include <string>

#include "dispatch/inventory.h"

namespace trine {

struct MachineOptions {
  std::string root;  // see detect::DetectOptions; without plugins when set
  RegistryOptions registry;
};

// Looks at the machine and at all plugins.
Inventory DescribeMachine(const MachineOptions& options);

std::string MachineReportText(const Inventory& inventory);

}  // namespace trine

#endif  // TRINE_RUNTIME_MACHINE_REPORT_H_
