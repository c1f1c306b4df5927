// The functions of vec_math.h at each level, for tests: operations show them only through later
// roundings.

#ifndef TRINE_KERNELS_CPU_VEC_MATH_PROBE_H_
#define TRINE_KERNELS_CPU_VEC_MATH_PROBE_H_

#include <cstdint>
#include <string_view>

namespace trine::cpu_kernels {

// y[i] = f(x[i]) for i < n.
using MathFunction = void (*)(const float* x, int64_t n, float* y);

struct MathProbe {
  MathFunction canon, recip, sqrt, rsqrt, exp, sigmoid, silu, gelu, tanh;
};

// Null when this build has no such level. The processor must have it when a function is called.
const MathProbe* FindMathProbe(std::string_view level);

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_VEC_MATH_PROBE_H_
