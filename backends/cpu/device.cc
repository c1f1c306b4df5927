#include "backends/cpu/device.h"

#include <sys/utsname.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "detect/machine.h"

namespace trine::cpu {
namespace {

// What does not change while the process lives.
struct Facts {
  std::string name;
  std::string driver;
  std::vector<detect::SimdFeature> features;
  cpu_kernels::Caches caches;
};

const Facts& CpuFacts() {
  static const Facts facts = [] {
    const detect::ProcessorInfo cpu = detect::DetectProcessor();
    utsname kernel{};
    uname(&kernel);
    return Facts{cpu.model.empty() ? cpu.arch + " processor" : cpu.model,
                 std::string(kernel.sysname) + " " + kernel.release, cpu.features,
                 CachesOf(detect::ReadCoreCaches(detect::FileRoot("")))};
  }();
  return facts;
}

template <size_t N>
void SetText(char (&field)[N], const std::string& text) {
  std::snprintf(field, N, "%s", text.c_str());
}

}  // namespace

trine_backend MakeBackend(const trine_host* host) {
  trine_backend backend{host, ChooseKernels(CpuFacts().features, std::getenv("TRINE_CPU_ISA")),
                        false, CpuFacts().caches, std::make_unique<WayTrials>()};
  if (backend.choice.level == nullptr) return backend;
  const std::string failure = SelfTestFailure(*backend.choice.level);
  backend.exact = failure.empty();
  if (!backend.exact) {
    const std::string message = std::string("cpu: the kernels of level ") +
                                backend.choice.level->name + " differ from the reference in " +
                                failure + "; the device offers fast numerics only";
    host->log(host->self, TRINE_LOG_WARNING, message.c_str());
  }
  return backend;
}

trine_device_info DescribeDevice(const trine_backend& backend) {
  trine_device_info info{};
  detect::Notes notes;
  const detect::MemoryInfo memory = detect::ReadMemory(detect::FileRoot(""), &notes);
  info.tier = TRINE_TIER_CPU;
  info.flags = TRINE_DEVICE_UNIFIED_MEMORY;
  info.numerics = backend.exact ? TRINE_NUMERICS_EXACT : TRINE_NUMERICS_FAST;
  info.memory_total = memory.total_bytes;
  info.memory_free = memory.available_bytes;
  info.buffer_alignment = Memory::kAlignment;
  info.import_alignment = Memory::kAlignment;
  // It reads whatever the process reads.
  info.imports = TRINE_IMPORTS_TRIED | TRINE_IMPORTS_WRITABLE | TRINE_IMPORTS_READ_ONLY;
  SetText(info.name, CpuFacts().name);
  SetText(info.driver, CpuFacts().driver);
  SetText(info.memory_pool, "system");
  SetText(info.bandwidth_domain, "system");
  if (backend.choice.level != nullptr) {
    SetText(info.arch, backend.choice.level->name);
  } else {
    info.flags |= TRINE_DEVICE_UNUSABLE;
    SetText(info.reason, backend.choice.reason);
  }
  return info;
}

}  // namespace trine::cpu
