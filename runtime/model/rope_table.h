// Cosines and sines of rotary positions, computed from add, multiply and divide in binary64 alone:
// the same bits on every host, whatever its libm. docs/numerics.md, "Rope tables".
#ifndef TRINE_RUNTIME_MODEL_ROPE_TABLE_H_
#define TRINE_RUNTIME_MODEL_ROPE_TABLE_H_

#include <cstdint>
#include <vector>

#include "runtime/model/model_config.h"

namespace trine {

class RopeTable {
 public:
  // `factors` divide the frequencies, one per pair (Llama 3's rope_freqs.weight); empty: none.
  RopeTable(const RopeConfig& config, const std::vector<float>& factors);

  int64_t pairs() const { return static_cast<int64_t>(frequencies_.size()); }

  // 2 * pairs values: the cosines of the position's angles, then the sines, canonical.
  void Row(int64_t position, float* out) const;

 private:
  std::vector<double> frequencies_;  // radians per position
};

// The functions behind it, exposed for tests. Errors are below 2e-15 relative (Log, Exp) and 1e-15
// absolute (SinCos below 2^21 radians; beyond, the reduction loses accuracy, but never a defined
// result).
namespace exact_double {
double Log(double x);                                     // x > 0, normal
double Exp(double x);                                     // -700 < x < 700
void SinCos(double angle, double* sine, double* cosine);  // 0 <= angle < 2^53
}  // namespace exact_double

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_ROPE_TABLE_H_
