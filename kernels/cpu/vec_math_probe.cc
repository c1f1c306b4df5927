#include "kernels/cpu/vec_math_probe.h"

#include "kernels/cpu/map_row.h"
#include "kernels/cpu/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

#define TRINE_PROBE(Function)                                    \
  [](const float* x, int64_t n, float* y) {                      \
    MapRow(x, y, n, [](auto value) { return Function(value); }); \
  }

}  // namespace

extern const MathProbe kMathProbe;
constinit const MathProbe kMathProbe = {
    .canon = TRINE_PROBE(Canon),
    .recip = TRINE_PROBE(Recip),
    .sqrt = TRINE_PROBE(Sqrt),
    .rsqrt = TRINE_PROBE(Rsqrt),
    .exp = TRINE_PROBE(Exp),
    .sigmoid = TRINE_PROBE(Sigmoid),
    .silu = TRINE_PROBE(Silu),
    .gelu = TRINE_PROBE(Gelu),
    .tanh = TRINE_PROBE(Tanh),
};

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
