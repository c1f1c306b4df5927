// Logarithm, exponential, sine and cosine from add, multiply and divide in binary64 alone: the same
// bits on every host, whatever its libm. docs/numerics.md, "Rope tables". Errors are below 2e-15
// relative (Log, Exp) and 1e-15 absolute (SinCos below 2^21 radians; beyond, the reduction loses
// accuracy, but never a defined result).
#ifndef TRINE_RUNTIME_MODEL_EXACT_DOUBLE_H_
#define TRINE_RUNTIME_MODEL_EXACT_DOUBLE_H_

namespace trine::exact_double {

double Log(double x);                                     // x > 0, normal
double Exp(double x);                                     // -700 < x < 700
void SinCos(double angle, double* sine, double* cosine);  // 0 <= angle < 2^53

}  // namespace trine::exact_double

#endif  // TRINE_RUNTIME_MODEL_EXACT_DOUBLE_H_
