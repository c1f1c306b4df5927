// Prints the name of the best level that this machine can run. CMake runs this program while it
// configures. It is linked without any kernels.
#include <cstdio>

#include "kernels/cpu/levels/host_features.h"
#include "kernels/cpu/levels/levels.h"

namespace trine::cpu_kernels {
const KernelTable kReferenceLevel{};
}  // namespace trine::cpu_kernels

int main() {
  const char* best = "reference";
  for (const auto& level : trine::cpu_kernels::Levels()) {
    if (!level.on_request_only && CanRun(level, trine::cpu_kernels::HostHas)) best = level.name;
  }
  std::puts(best);
}
