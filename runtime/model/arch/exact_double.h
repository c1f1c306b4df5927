// Computes logarithm, exponential, sine and cosine with only add, multiply and divide in binary64,
// so the bits are the same on every host, whatever its libm (docs/numerics.md, "Rope tables"). The
// relative error of Log and Exp is below 2e-15. The absolute error of SinCos is below 1e-15 up to
// 2^21 radians; larger angles lose accuracy, but the result stays defined.
#pragma once

namespace trine::exact_double {

double Log(double x);                                     // x > 0, normal
double Exp(double x);                                     // -700 < x < 700
void SinCos(double angle, double* sine, double* cosine);  // 0 <= angle < 2^53

}  // namespace trine::exact_double
