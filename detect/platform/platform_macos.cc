// macOS: calls sysctl. Not tested: written from the documented names, never run by this project.

#include <mach/mach.h>
#include <sys/sysctl.h>
#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detect/cpu/cpuinfo.h"
#include "detect/cpu/x86_features.h"
#include "detect/platform/platform.h"
#include "detect/text.h"

namespace trine::detect {
namespace {

std::optional<uint64_t> SysctlNumber(const char* name) {
  uint64_t value = 0;  // The kernel fills 4 or 8 bytes; both architectures are little-endian.
  size_t size = sizeof(value);
  if (sysctlbyname(name, &value, &size, nullptr, 0) != 0) return std::nullopt;
  if (size != 4 && size != 8) return std::nullopt;
  return value;
}

std::string SysctlText(const char* name) {
  char text[256] = {};
  size_t size = sizeof(text) - 1;
  if (sysctlbyname(name, text, &size, nullptr, 0) != 0) return "";
  return CleanText(std::string_view(text));
}

int SysctlCount(const char* name) {
  const auto value = SysctlNumber(name);
  return value && *value < kMaxCpus ? static_cast<int>(*value) : 0;
}

void AddCache(const char* name, int level, CacheType type, uint32_t line, int threads,
              Topology* topology) {
  const auto size = SysctlNumber(name);
  if (!size || *size == 0) return;
  // sysctl gives the number of caches only for each kind of core, so it stays 0: not known.
  topology->caches.push_back({level, type, *size, line, 0, level < 3 ? 0 : threads});
}

#if defined(__aarch64__)
// Returns the features, of which sysctl has one entry each, by their Linux flag names.
std::vector<std::string> ArmFlags() {
  constexpr const char* kNames[][2] = {
      {"hw.optional.AdvSIMD", "asimd"},         {"hw.optional.arm.FEAT_FP16", "asimdhp"},
      {"hw.optional.arm.FEAT_FHM", "asimdfhm"}, {"hw.optional.arm.FEAT_DotProd", "asimddp"},
      {"hw.optional.arm.FEAT_BF16", "bf16"},    {"hw.optional.arm.FEAT_I8MM", "i8mm"},
      {"hw.optional.arm.FEAT_SME", "sme"}};
  std::vector<std::string> flags;
  for (const auto& [name, flag] : kNames) {
    if (SysctlNumber(name).value_or(0) != 0) flags.push_back(flag);
  }
  std::sort(flags.begin(), flags.end());
  return flags;
}
#endif

}  // namespace

ProcessorInfo HostProcessor(Notes* notes) {
  AddNote(notes, "cpu: detection on macOS is untested");
  ProcessorInfo processor;
  processor.model = SysctlText("machdep.cpu.brand_string");
#if defined(__aarch64__)
  processor.arch = "aarch64";
  processor.vendor = "Apple";
  processor.features = ArmFeaturesFromFlags(ArmFlags());
  processor.simd_level = ArmSimdLevel(processor.features);
#else
  // macOS sets the AVX-512 bits of XCR0 only on first use, so those levels are under-reported.
  if (const auto source = HostCpuid()) {
    X86Cpu x86 = DecodeX86(source.get());
    processor.arch = "x86-64";
    processor.vendor = x86.vendor;
    processor.features = x86.features;
    processor.simd_level = x86.simd_level;
  }
#endif
  return processor;
}

CpuInfo HostCpu(Notes* notes) {
  CpuInfo cpu{HostProcessor(notes), {}, {}, {}, {}};
  Topology& topology = cpu.topology;
  topology.source = "sysctl";
  topology.packages = SysctlCount("hw.packages");
  topology.cores = SysctlCount("hw.physicalcpu");
  topology.threads = SysctlCount("hw.logicalcpu");
  if (topology.cores > 0) topology.threads_per_core = topology.threads / topology.cores;
  for (int number = 0; number < topology.threads; ++number) topology.cpus.push_back(number);
  const auto line = static_cast<uint32_t>(SysctlNumber("hw.cachelinesize").value_or(0));
  AddCache("hw.l1dcachesize", 1, CacheType::kData, line, topology.threads, &topology);
  AddCache("hw.l1icachesize", 1, CacheType::kInstruction, line, topology.threads, &topology);
  AddCache("hw.l2cachesize", 2, CacheType::kUnified, line, topology.threads, &topology);
  AddCache("hw.l3cachesize", 3, CacheType::kUnified, line, topology.threads, &topology);
  cpu.usable_cpus = topology.cpus;  // macOS cannot bind a thread to a processor.
  return cpu;
}

MemoryInfo HostMemory(Notes* notes) {
  MemoryInfo memory;
  memory.physical_bytes = memory.total_bytes = SysctlNumber("hw.memsize").value_or(0);
  vm_statistics64_data_t statistics = {};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  vm_size_t page = 0;
  const mach_port_t host = mach_host_self();
  if (host_page_size(host, &page) == KERN_SUCCESS &&
      host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&statistics),
                        &count) == KERN_SUCCESS) {
    const uint64_t pages = uint64_t{statistics.free_count} + statistics.inactive_count;
    memory.available_bytes = pages * page;
  } else {
    AddNote(notes, "memory: the kernel did not say how much is free");
  }
  return memory;
}

std::vector<GpuInfo> HostGpus(Notes* notes) {
  std::vector<GpuInfo> gpus;
#if defined(__aarch64__)
  GpuInfo gpu;
  gpu.vendor = "Apple";
  gpu.family = "AGX";
  gpu.name = SysctlText("machdep.cpu.brand_string");
  gpu.kind = GpuKind::kIntegrated;
  gpu.kind_reason = "part of every Apple chip";
  gpu.counted_reason = "no backend for Metal";
  gpus.push_back(gpu);
  AddNote(notes, "gpu: the Apple GPU is not counted: no backend for Metal");
#else
  AddNote(notes, "gpu: not detected on Intel Macs");
#endif
  return gpus;
}

}  // namespace trine::detect
