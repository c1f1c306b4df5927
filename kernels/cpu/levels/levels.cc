#include "kernels/cpu/levels/levels.h"

#define TRINE_DECLARE_LEVEL(level)                \
  namespace level {                               \
  extern const KernelTable kTable TRINE_OF_LEVEL; \
  }

namespace trine::cpu_kernels {

#if defined(__x86_64__)

TRINE_DECLARE_LEVEL(baseline)
TRINE_DECLARE_LEVEL(avx2)
TRINE_DECLARE_LEVEL(avxvnni)
TRINE_DECLARE_LEVEL(avx512)
TRINE_DECLARE_LEVEL(amx)

namespace {

constexpr const char* kBaseline[] = {"sse4.2"};
constexpr const char* kAvx2[] = {"sse4.2", "bmi2", "avx", "f16c", "avx2"};
constexpr const char* kAvxVnni[] = {"sse4.2", "bmi2", "avx", "f16c", "avx2", "avx-vnni"};
constexpr const char* kAvx512[] = {"sse4.2",   "bmi2",     "avx",        "f16c",
                                   "avx2",     "avx512f",  "avx512cd",   "avx512bw",
                                   "avx512dq", "avx512vl", "avx512-vnni"};
constexpr const char* kAmx[] = {"sse4.2",   "bmi2",        "avx",      "f16c",     "avx2",
                                "avx512f",  "avx512cd",    "avx512bw", "avx512dq", "avx512vl",
                                "amx-tile", "avx512-vnni", "amx-int8"};

constexpr Level kLevels[] = {
    {"reference", {}, &kReferenceLevel, true},   {"baseline", kBaseline, &baseline::kTable, false},
    {"avx2", kAvx2, &avx2::kTable, false},       {"avxvnni", kAvxVnni, &avxvnni::kTable, false},
    {"avx512", kAvx512, &avx512::kTable, false}, {"amx", kAmx, &amx::kTable, false},
};

}  // namespace

#elif defined(__aarch64__)

TRINE_DECLARE_LEVEL(baseline)
TRINE_DECLARE_LEVEL(dotprod)
TRINE_DECLARE_LEVEL(i8mm)

namespace {

constexpr const char* kBaseline[] = {"neon"};
constexpr const char* kDotprod[] = {"neon", "dotprod"};
constexpr const char* kI8mm[] = {"neon", "fp16", "fp16fml", "dotprod", "i8mm"};

constexpr Level kLevels[] = {
    {"reference", {}, &kReferenceLevel, true},
    {"baseline", kBaseline, &baseline::kTable, false},
    {"dotprod", kDotprod, &dotprod::kTable, false},
    {"i8mm", kI8mm, &i8mm::kTable, false},
};

}  // namespace

#else

namespace {

constexpr Level kLevels[] = {{"reference", {}, &kReferenceLevel, false}};

}  // namespace

#endif

std::span<const Level> Levels() { return kLevels; }

const Level* FindLevel(std::string_view name) {
  for (const Level& level : kLevels) {
    if (name == level.name) return &level;
  }
  return nullptr;
}

}  // namespace trine::cpu_kernels
