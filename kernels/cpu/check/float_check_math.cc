#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/check/check.h"
#include "kernels/cpu/check/vec_math_probe.h"
#include "kernels/cpu/levels/levels.h"
#include "kernels/quant/test_util.h"
#include "kernels/reference/math.h"

#define TRINE_DECLARE_PROBE(level)                  \
  namespace level {                                 \
  extern const MathProbe kMathProbe TRINE_OF_LEVEL; \
  }

namespace trine::cpu_kernels {

TRINE_DECLARE_PROBE(baseline)
#if defined(__x86_64__)
TRINE_DECLARE_PROBE(avx2)
TRINE_DECLARE_PROBE(avxvnni)
TRINE_DECLARE_PROBE(avx512)
TRINE_DECLARE_PROBE(amx)
#elif defined(__aarch64__)
TRINE_DECLARE_PROBE(dotprod)
TRINE_DECLARE_PROBE(i8mm)
#endif

const MathProbe* FindMathProbe(std::string_view level) {
  if (level == "baseline") return &baseline::kMathProbe;
#if defined(__x86_64__)
  if (level == "avx2") return &avx2::kMathProbe;
  if (level == "avxvnni") return &avxvnni::kMathProbe;
  if (level == "avx512") return &avx512::kMathProbe;
  if (level == "amx") return &amx::kMathProbe;
#elif defined(__aarch64__)
  if (level == "dotprod") return &dotprod::kMathProbe;
  if (level == "i8mm") return &i8mm::kMathProbe;
#endif
  return nullptr;
}

namespace {

struct Function {
  const char* name;
  MathFunction MathProbe::*kernel;
  float (*reference)(float);
  bool any_bits;  // else canonical arguments only
};

constexpr Function kFunctions[] = {
    {"canon", &MathProbe::canon, reference::Canon, true},
    {"recip", &MathProbe::recip, reference::Recip, true},
    {"sqrt", &MathProbe::sqrt, reference::Sqrt, true},
    {"rsqrt", &MathProbe::rsqrt, reference::Rsqrt, true},
    {"exp", &MathProbe::exp, reference::Exp, false},
    {"sigmoid", &MathProbe::sigmoid, reference::Sigmoid, false},
    {"silu", &MathProbe::silu, reference::Silu, false},
    {"gelu", &MathProbe::gelu, reference::Gelu, false},
    {"tanh", &MathProbe::tanh, reference::Tanh, false},
};

// Arguments where a function changes its formula; their neighbours are checked too.
constexpr float kEdges[] = {0.0f,      44.0f,     16.0f,     1.0f,      0x1p-50f,  0x1p+50f,
                            0x1p-126f, 0x1p+126f, 0x1p+127f, 0x1p-149f, 0x1p+125f, 0.5f};

void AppendEdges(std::vector<float>* x) {
  for (float edge : kEdges) {
    for (uint32_t nudge : {0xfffffffeu, 0xffffffffu, 0u, 1u, 2u}) {
      const uint32_t bits = quant::Bits(edge) + nudge;
      x->push_back(quant::FromBits(bits & 0x7fffffffu));
      x->push_back(quant::FromBits(bits | 0x80000000u));
    }
  }
  for (uint32_t bits : {0x7f7fffffu, 0x7f800000u, 0x7f800001u, 0x7fc00000u, 0x7fffffffu}) {
    x->push_back(quant::FromBits(bits));
    x->push_back(quant::FromBits(bits | 0x80000000u));
  }
}

void CheckFunction(const Function& function, const MathProbe& probe, std::vector<float> x,
                   CheckReport* report) {
  if (!function.any_bits) {
    for (float& value : x) value = reference::Canon(value);
  }
  std::vector<float> want(x.size()), found(x.size());
  for (size_t i = 0; i < x.size(); ++i) want[i] = function.reference(x[i]);
  for (const bool flush : {false, true}) {
    {
      std::optional<quant::ScopedFlushToZero> flush_to_zero;
      if (flush) flush_to_zero.emplace();
      (probe.*function.kernel)(x.data(), static_cast<int64_t>(x.size()), found.data());
    }
    for (size_t i = 0; i < x.size(); ++i) {
      report->Expect(quant::Bits(want[i]) == quant::Bits(found[i]), [&] {
        char text[120];
        std::snprintf(text, sizeof(text),
                      "%s(%08" PRIx32 ")%s: found %08" PRIx32 ", expected %08" PRIx32,
                      function.name, quant::Bits(x[i]), flush ? ", denormals flushed" : "",
                      quant::Bits(found[i]), quant::Bits(want[i]));
        return std::string(text);
      });
    }
  }
}

}  // namespace

void CheckMath(const KernelTable& table, uint32_t stride, CheckReport* report) {
  const MathProbe* probe = FindMathProbe(table.level);
  report->Expect(probe != nullptr, [&] { return std::string("no probe for ") + table.level; });
  if (probe == nullptr) return;
  std::vector<float> x;
  const auto check_batch = [&] {
    for (const Function& function : kFunctions) CheckFunction(function, *probe, x, report);
    x.clear();
  };
  constexpr size_t kBatch = 4099;  // odd, so that there is a tail
  const auto add = [&](uint64_t bits) {
    x.push_back(quant::FromBits(static_cast<uint32_t>(bits)));
    if (x.size() == kBatch) check_batch();
  };
  AppendEdges(&x);
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += stride) add(bits);
  // Smaller steps from 2^-8 to 64, where the polynomials show.
  for (uint64_t bits = 0x3b800000u; bits <= 0x42800000u; bits += stride / 16 + 1) {
    add(bits);
    add(bits | 0x80000000u);
  }
  check_batch();
}

}  // namespace trine::cpu_kernels
