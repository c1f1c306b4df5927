// Describes the processor. ProcessorInfo: its name, and the vector instructions that may be used.
// CpuInfo adds its cores and caches, for which some files of each core are read.
//
// "Advertised" features are those that CPUID or the kernel reports. A feature is "usable" when the
// operating system also saves its registers and, for AMX, lets this process use them. Only usable
// features may be executed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "detect/cpu/topology.h"
#include "detect/file_root.h"

namespace trine::detect {

struct SimdFeature {
  std::string name;  // "avx2", "amx-int8", "dotprod", ...
  bool advertised = false;
  bool usable = false;
  std::string reason;  // Why an advertised feature is not usable; otherwise "".
};

// The cores of one kind in a hybrid processor.
struct CoreKind {
  std::string name;  // "performance", "efficiency", "low-power", or "capacity 1024" on ARM.
  std::vector<int> cpus;
};

struct ProcessorInfo {
  std::string arch;    // "x86-64", "aarch64", ...; "" when unknown.
  std::string vendor;  // "Intel", "AMD", "Arm", ...
  std::string model;

  std::vector<SimdFeature> features;  // Every feature known for `arch`, advertised or not.

  // The highest kernel level that may run; each level includes the ones before it:
  //   x86-64:  baseline, avx2, avx512, avx512-vnni, amx
  //   aarch64: baseline, neon, dotprod, i8mm, sve, sve2
  // "baseline" also stands for an unknown architecture.
  std::string simd_level = "baseline";
};

struct CpuInfo : ProcessorInfo {
  Topology topology;
  std::vector<CoreKind> core_kinds;  // Empty unless the processor is hybrid.

  std::vector<int> usable_cpus;  // Online processors that this process may use (affinity, cpuset).
  // The processors' worth of time that the cgroup allows; nullopt: no limit.
  std::optional<double> cpu_quota;
};

// Reads the /proc/cpuinfo of a root.
ProcessorInfo ReadProcessor(const FileRoot& root, Notes* notes);

// Fills the kinds of cores, the usable processors and the quota of `cpu`. REQUIRES: its topology is
// filled. If the topology has no processors, it first gets the number that /proc/cpuinfo has.
void ReadUse(const FileRoot& root, CpuInfo* cpu);

// Reads the files of a root: /proc/cpuinfo, /proc/self/status, /sys/devices/system/cpu and the cpu
// cgroup. Never calls AMX usable, because no file says whether this process may use it.
CpuInfo ReadCpu(const FileRoot& root, Notes* notes);

// Returns whether `features` has a usable feature of that name.
bool Usable(const std::vector<SimdFeature>& features, const char* name);

}  // namespace trine::detect
