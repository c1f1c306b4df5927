// Float sums in the order of the contract: N partial sums, element k in class k mod N, by
// increasing k, joined by halves. Elements that are left out (a tail, a mask) add nothing to their
// class.

#ifndef TRINE_KERNELS_REFERENCE_SUMS_H_
#define TRINE_KERNELS_REFERENCE_SUMS_H_

#include <cstdint>

namespace trine::reference {

template <int N>
struct ClassSums {
  static_assert(N > 0 && (N & (N - 1)) == 0);

  float class_sum[N] = {};

  void Add(int64_t k, float term) { class_sum[k % N] += term; }

  // for n = N/2, N/4 .. 1: s[j] += s[j + n]
  float Total() {
    for (int n = N / 2; n > 0; n /= 2) {
      for (int j = 0; j < n; ++j) class_sum[j] += class_sum[j + n];
    }
    return class_sum[0];
  }
};

using Sums32 = ClassSums<32>;

}  // namespace trine::reference

#endif  // TRINE_KERNELS_REFERENCE_SUMS_H_
