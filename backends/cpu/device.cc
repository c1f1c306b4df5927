#include "backends/cpu/device.h"

#include <sys/utsname.h>

#include <cstdio>
#include <string>

#include "detect/machine.h"

namespace trine::cpu {
namespace {

// What does not change while the process lives.
struct Facts {
  std::string name;
  std::string arch;
  std::string driver;
};

const Facts& CpuFacts() {
  static const Facts facts = [] {
    const detect::CpuInfo cpu = detect::DetectMachine().cpu;
    utsname kernel{};
    uname(&kernel);
    return Facts{cpu.model.empty() ? cpu.arch + " processor" : cpu.model, cpu.simd_level,
                 std::string(kernel.sysname) + " " + kernel.release};
  }();
  return facts;
}

template <size_t N>
void SetText(char (&field)[N], const std::string& text) {
  std::snprintf(field, N, "%s", text.c_str());
}

}  // namespace

trine_device_info DescribeDevice() {
  trine_device_info info{};
  detect::Notes notes;
  const detect::MemoryInfo memory = detect::ReadMemory(detect::FileRoot(""), &notes);
  info.tier = TRINE_TIER_CPU;
  info.flags = TRINE_DEVICE_UNIFIED_MEMORY;
  info.numerics = TRINE_NUMERICS_EXACT;
  info.memory_total = memory.total_bytes;
  info.memory_free = memory.available_bytes;
  info.buffer_alignment = Memory::kAlignment;
  info.import_alignment = Memory::kAlignment;
  SetText(info.name, CpuFacts().name);
  SetText(info.arch, CpuFacts().arch);
  SetText(info.driver, CpuFacts().driver);
  SetText(info.memory_pool, "system");
  SetText(info.bandwidth_domain, "system");
  return info;
}

}  // namespace trine::cpu
