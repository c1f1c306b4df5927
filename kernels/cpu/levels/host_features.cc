#include "kernels/cpu/levels/host_features.h"

#include <cstdio>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace trine::cpu_kernels {

#if defined(__x86_64__)

namespace {

// Reads CPUID, since some compilers do not know AVX-VNNI by name. __builtin_cpu_supports("avx2")
// confirms that the registers may be used.
bool HasAvxVnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 &&
         (a & 1u << 4) != 0;
}

bool HasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) != 0 &&
         (c & 1u << 29) != 0;
}

// Requests the tiles from the operating system, once: a process may use them only if it grants
// them.
bool HasAmx(unsigned bit) {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & 1u << bit) != 0;
}

}  // namespace

bool HostHas(const char* feature) {
  const std::string_view name = feature;
  if (name == "sse4.2") return __builtin_cpu_supports("sse4.2");
  if (name == "bmi2") return __builtin_cpu_supports("bmi2");
  if (name == "avx") return __builtin_cpu_supports("avx");
  if (name == "f16c") return HasF16c();
  if (name == "avx2") return __builtin_cpu_supports("avx2");
  if (name == "avx-vnni") return HasAvxVnni();
  if (name == "avx512f") return __builtin_cpu_supports("avx512f");
  if (name == "avx512cd") return __builtin_cpu_supports("avx512cd");
  if (name == "avx512bw") return __builtin_cpu_supports("avx512bw");
  if (name == "avx512dq") return __builtin_cpu_supports("avx512dq");
  if (name == "avx512vl") return __builtin_cpu_supports("avx512vl");
  if (name == "amx-tile") return HasAmx(24);
  if (name == "amx-int8") return HasAmx(25);
  if (name == "avx512-vnni") return __builtin_cpu_supports("avx512vnni");
  return false;
}

#elif defined(__aarch64__)

bool HostHas(const char* feature) {
  const std::string_view name = feature;
  if (name == "neon") return true;
#if defined(__linux__)
  constexpr unsigned long kAsimdHp = 1ul << 10, kAsimdDp = 1ul << 20, kAsimdFhm = 1ul << 23;
  constexpr unsigned long kI8mm = 1ul << 13;  // in AT_HWCAP2
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  if (name == "fp16") return (first & kAsimdHp) != 0;
  if (name == "fp16fml") return (first & kAsimdFhm) != 0;
  if (name == "dotprod") return (first & kAsimdDp) != 0;
  if (name == "i8mm") return (second & kI8mm) != 0;
#endif
  return false;
}

#else

bool HostHas(const char*) { return false; }

#endif

Caches HostCaches() {
  Caches caches;
  for (int index = 0; index < 8; ++index) {
    const auto read = [&](const char* name, char(&text)[16]) {
      char path[96];
      std::snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index,
                    name);
      std::FILE* const file = std::fopen(path, "r");
      if (file == nullptr) return false;
      const bool there = std::fgets(text, sizeof(text), file) != nullptr;
      std::fclose(file);
      return there;
    };
    char level[16], type[16], size[16];
    long long amount = 0;
    char unit = 0;
    if (!read("level", level) || !read("type", type) || !read("size", size)) continue;
    if (type[0] == 'I' || std::sscanf(size, "%lld%c", &amount, &unit) != 2) continue;
    if (amount <= 0 || (unit != 'K' && unit != 'M')) continue;
    const int64_t bytes = amount << (unit == 'K' ? 10 : 20);
    if (level[0] == '1') caches.first_level = bytes;
    if (level[0] == '2') caches.second_level = bytes;
  }
  return caches;
}

}  // namespace trine::cpu_kernels
