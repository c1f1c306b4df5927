// Linux: the files of "/", and what only the running processor and kernel can say.

#include "detect/platform.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <optional>
#include <utility>

#include "detect/arm_features.h"
#include "detect/file_root.h"
#include "detect/topology.h"
#include "detect/x86_cpuid.h"
#include "detect/x86_features.h"

namespace trine::detect {
namespace {

FileRoot Host() { return FileRoot("/"); }

// hwloc is not asked where the kernel's files are not there: it would complain on stderr.
std::optional<Topology> AskHwloc(Notes* notes) {
  if (!Host().Resolve("/sys/devices/system/cpu/online")) return std::nullopt;
  return HwlocTopology(notes);
}

}  // namespace

ProcessorInfo HostProcessor(Notes* notes) {
#if defined(__x86_64__)
  // It says of itself all there is to know: the kernel's text on every core need not be read.
  X86Cpu x86 = DecodeX86(HostCpuid().get());
  if (!x86.vendor.empty() && !x86.model.empty()) {
    return {"x86-64", std::move(x86.vendor), std::move(x86.model), std::move(x86.features),
            std::move(x86.simd_level)};
  }
#endif
  ProcessorInfo processor = ReadProcessor(Host(), notes);
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
    cpu.topology = ReadTopology(Host(), notes);
  }
  ReadUse(Host(), &cpu);
  return cpu;
}

MemoryInfo HostMemory(Notes* notes) { return ReadMemory(Host(), notes); }

std::vector<GpuInfo> HostGpus(Notes* notes) { return ReadGpus(Host(), notes); }

}  // namespace trine::detect
