// Linux: the files of "/", and what only the running processor and kernel can say.

#include "detect/platform.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <utility>

#include "detect/arm_features.h"
#include "detect/file_root.h"
#include "detect/topology.h"
#include "detect/x86_cpuid.h"
#include "detect/x86_features.h"

namespace trine::detect {
namespace {

FileRoot Host() { return FileRoot("/"); }

void AskProcessor(CpuInfo* cpu) {
#if defined(__x86_64__)
  cpu->arch = "x86-64";
  X86Cpu x86 = DecodeX86(HostCpuid().get());
  if (!x86.vendor.empty()) cpu->vendor = std::move(x86.vendor);
  if (!x86.model.empty()) cpu->model = std::move(x86.model);
  cpu->features = std::move(x86.features);
  cpu->simd_level = std::move(x86.simd_level);
#elif defined(__aarch64__)
  cpu->arch = "aarch64";
  cpu->features = ArmFeaturesFromHwcap(getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
  cpu->simd_level = ArmSimdLevel(cpu->features);
#else
  (void)cpu;
#endif
}

}  // namespace

CpuInfo HostCpu(Notes* notes) {
  CpuInfo cpu = ReadCpu(Host(), notes);
  AskProcessor(&cpu);
  // Without the kernel's files hwloc knows no more than we do, and complains on stderr.
  if (cpu.topology.source == "sysfs") {
    if (auto topology = HwlocTopology(notes)) cpu.topology = std::move(*topology);
  }
  return cpu;
}

MemoryInfo HostMemory(Notes* notes) { return ReadMemory(Host(), notes); }

std::vector<GpuInfo> HostGpus(Notes* notes) { return ReadGpus(Host(), notes); }

}  // namespace trine::detect
