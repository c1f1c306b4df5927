#include "runtime/make_model/rope_factors.h"

#include <cmath>
#include <cstdint>

namespace trine {
namespace {

constexpr double kTwoPi = 6.283185307179586;

// Waves that turn less than once in the original context are stretched by the whole factor, those
// that turn more than four times not at all, the others by something between.
std::vector<float> Llama3Factors(const RopeShape& rope, int64_t pairs) {
  constexpr double kLowTurns = 1, kHighTurns = 4;
  // base^(1 / pairs), by square roots, which every processor rounds alike; CheckShape has seen to
  // it that pairs is a power of two.
  double step = rope.base;
  for (int64_t n = pairs; n > 1; n /= 2) step = std::sqrt(step);
  std::vector<float> factors;
  double wave = kTwoPi;
  for (int64_t i = 0; i < pairs; ++i, wave *= step) {
    const double turns = static_cast<double>(rope.original_context) / wave;
    double factor = 1;
    if (turns < kLowTurns) {
      factor = rope.factor;
    } else if (turns <= kHighTurns) {
      const double smooth = (turns - kLowTurns) / (kHighTurns - kLowTurns);
      factor = 1 / ((1 - smooth) / rope.factor + smooth);
    }
    factors.push_back(static_cast<float>(factor));
  }
  return factors;
}

// From 1 for the shortest wave to `last` for the longest.
std::vector<float> Ramp(int64_t pairs, double last) {
  std::vector<float> factors;
  for (int64_t i = 0; i < pairs; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(pairs);
    factors.push_back(static_cast<float>(1 + (last - 1) * part * part));
  }
  return factors;
}

}  // namespace

std::vector<RopeFactors> MakeRopeFactors(const ModelShape& shape) {
  const RopeShape& rope = shape.rope;
  const int64_t pairs = (rope.dims > 0 ? rope.dims : shape.head_dim) / 2;
  switch (rope.scaling) {
    case RopeScaling::kLlama3:
      return {{"rope_freqs.weight", Llama3Factors(rope, pairs)}};
    case RopeScaling::kLongRope: {
      const double stretch =
          2 * static_cast<double>(shape.ctx) / static_cast<double>(rope.original_context);
      return {{"rope_factors_long.weight", Ramp(pairs, stretch)},
              {"rope_factors_short.weight", Ramp(pairs, 2.8)}};
    }
    default:
      return {};
  }
}

}  // namespace trine
