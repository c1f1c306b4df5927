// Gives tests the functions of vec_math.h at each level. Operations show their results only after
// further roundings.

#pragma once

#include <cstdint>
#include <string_view>

namespace trine::cpu_kernels {

// y[i] = f(x[i]) for i < n.
using MathFunction = void (*)(const float* x, int64_t n, float* y);

struct MathProbe {
  MathFunction canon, recip, sqrt, rsqrt, exp, sigmoid, silu, gelu, tanh;
};

// Returns the functions of a level, or null if this build has no such level. They need a processor
// that has the level.
const MathProbe* FindMathProbe(std::string_view level);

}  // namespace trine::cpu_kernels
