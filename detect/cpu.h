// ProcessorInfo: what the processor is and which vector instructions may be used. CpuInfo: also how
// it is laid out, which takes some files of each core.
//
// "Advertised" is what the processor says of itself. "Usable" also asks whether the operating
// system saves the registers and, for AMX, whether it lets this process have them. Only usable
// features may be executed.

#ifndef TRINE_DETECT_CPU_H_
#define TRINE_DETECT_CPU_H_

#include <optional>
#include <string>
#include <vector>

#include "detect/file_root.h"
#include "detect/notes.h"
#include "detect/topology.h"

namespace trine::detect {

struct SimdFeature {
  std::string name;  // "avx2", "amx-int8", "dotprod", ...
  bool advertised = false;
  bool usable = false;
  std::string reason;  // Why not usable, when advertised; else empty.
};

// Cores of one kind in a hybrid processor.
struct CoreKind {
  std::string name;  // "performance", "efficiency", "low-power", or "capacity 1024" on ARM.
  std::vector<int> cpus;
};

struct ProcessorInfo {
  std::string arch;    // "x86-64", "aarch64", ...; empty when unknown.
  std::string vendor;  // "Intel", "AMD", "Arm", ...
  std::string model;

  std::vector<SimdFeature> features;  // Every feature known for `arch`, advertised or not.

  // The richest kernel set that may run, each level including the ones before it:
  //   x86-64:  baseline, avx2, avx512, avx512-vnni, amx
  //   aarch64: baseline, neon, dotprod, i8mm, sve, sve2
  // "baseline" also stands for an unknown architecture.
  std::string simd_level = "baseline";
};

struct CpuInfo : ProcessorInfo {
  Topology topology;
  std::vector<CoreKind> core_kinds;  // Empty unless the processor is hybrid.

  std::vector<int> usable_cpus;     // Online ones this process may run on (affinity, cpuset).
  std::optional<double> cpu_quota;  // Processors' worth of time the cgroup allows, when limited.
};

// From /proc/cpuinfo of any root.
ProcessorInfo ReadProcessor(const FileRoot& root, Notes* notes);

// What is known of the processors' use when their topology is there: kinds of cores, usable ones,
// quota. A topology without processors is first filled with as many as /proc/cpuinfo counts.
void ReadUse(const FileRoot& root, CpuInfo* cpu);

// From the files of any root: /proc/cpuinfo, /proc/self/status, /sys/devices/system/cpu and the cpu
// cgroup. AMX is at best advertised here, since a file cannot say whether permission is given.
CpuInfo ReadCpu(const FileRoot& root, Notes* notes);

// True when `features` has `name` and it is usable.
bool Usable(const std::vector<SimdFeature>& features, const char* name);

}  // namespace trine::detect

#endif  // TRINE_DETECT_CPU_H_
