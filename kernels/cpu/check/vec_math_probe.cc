#include "kernels/cpu/check/vec_math_probe.h"

#include "kernels/cpu/simd/map_row.h"
#include "kernels/cpu/simd/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

#define TRINE_PROBE(Function)                                    \
  void Probe##Function(const float* x, int64_t n, float* y) {    \
    MapRow(x, y, n, [](auto value) { return Function(value); }); \
  }
TRINE_PROBE(Canon)
TRINE_PROBE(Recip)
TRINE_PROBE(Sqrt)
TRINE_PROBE(Rsqrt)
TRINE_PROBE(Exp)
TRINE_PROBE(Sigmoid)
TRINE_PROBE(Silu)
TRINE_PROBE(Gelu)
TRINE_PROBE(Tanh)
#undef TRINE_PROBE

}  // namespace

extern const MathProbe kMathProbe;
constinit const MathProbe kMathProbe = {
    .canon = ProbeCanon,
    .recip = ProbeRecip,
    .sqrt = ProbeSqrt,
    .rsqrt = ProbeRsqrt,
    .exp = ProbeExp,
    .sigmoid = ProbeSigmoid,
    .silu = ProbeSilu,
    .gelu = ProbeGelu,
    .tanh = ProbeTanh,
};

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
