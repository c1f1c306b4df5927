// Linux: reads the files of "/" and asks the running processor and kernel what no file says.

#include "detect/platform/platform.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <optional>
#include <utility>

#include "detect/cpu/cpuinfo.h"
#include "detect/cpu/topology.h"
#include "detect/cpu/x86_features.h"
#include "detect/file_root.h"

namespace trine::detect {
namespace {

FileRoot HostRoot() { return FileRoot("/"); }

// Does not ask hwloc where the kernel's files are missing, because it would complain on stderr.
std::optional<Topology> AskHwloc(Notes* notes) {
  if (!HostRoot().Resolve("/sys/devices/system/cpu/online")) return std::nullopt;
  return HwlocTopology(notes);
}

}  // namespace

ProcessorInfo HostProcessor(Notes* notes) {
#if defined(__x86_64__)
  // CPUID says all there is to know, so the kernel's text about every core need not be read.
  X86Cpu x86 = DecodeX86(HostCpuid().get());
  if (!x86.vendor.empty() && !x86.model.empty()) {
    return {"x86-64", std::move(x86.vendor), std::move(x86.model), std::move(x86.features),
            std::move(x86.simd_level)};
  }
#endif
  ProcessorInfo processor = ReadProcessor(HostRoot(), notes);
#if defined(__x86_64__)
  processor.arch = "x86-64";
  if (!x86.vendor.empty()) processor.vendor = std::move(x86.vendor);
  if (!x86.model.empty()) processor.model = std::move(x86.model);
  processor.features = std::move(x86.features);
  processor.simd_level = std::move(x86.simd_level);
#elif defined(__aarch64__)
  processor.arch = "aarch64";
  processor.features = ArmFeaturesFromHwcap(getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
  processor.simd_level = ArmSimdLevel(processor.features);
#endif
  return processor;
}

CpuInfo HostCpu(Notes* notes) {
  CpuInfo cpu{HostProcessor(notes), {}, {}, {}, {}};
  if (auto topology = AskHwloc(notes)) {
    cpu.topology = std::move(*topology);
    if (cpu.topology.caches.empty()) AddNote(notes, "topology: hwloc describes no caches");
  } else {
    cpu.topology = ReadTopology(HostRoot(), notes);
  }
  ReadUse(HostRoot(), &cpu);
  return cpu;
}

MemoryInfo HostMemory(Notes* notes) { return ReadMemory(HostRoot(), notes); }

std::vector<GpuInfo> HostGpus(Notes* notes) { return ReadGpus(HostRoot(), notes); }

}  // namespace trine::detect
