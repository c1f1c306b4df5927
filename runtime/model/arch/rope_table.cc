#include "runtime/model/arch/rope_table.h"

#include <algorithm>

#include "kernels/quant/scalar.h"
#include "runtime/model/arch/exact_double.h"

namespace trine {
namespace {

constexpr double kTwoPi = 0x1.921fb54442d18p+2;

// Returns the largest integer not above x, for abs(x) < 2^31.
double Floor(double x) {
  const auto cut = static_cast<double>(static_cast<int64_t>(x));
  return cut > x ? cut - 1.0 : cut;
}

// Computes the share of its frequency that each pair keeps: 1 for fast pairs, 0 for slow pairs.
class YarnMix {
 public:
  explicit YarnMix(const RopeConfig& config) {
    if (config.scaling != RopeScalingType::kYarn) return;
    const double last = static_cast<double>(config.dims - 1);
    low_ = std::max(0.0, Floor(PairWithTurns(config, config.yarn.beta_fast)));
    high_ = std::min(last, -Floor(-PairWithTurns(config, config.yarn.beta_slow)));
  }

  double Share(int64_t pair) const {
    const double ramp = (static_cast<double>(pair) - low_) / std::max(0.001, high_ - low_);
    return 1.0 - std::clamp(ramp, 0.0, 1.0);
  }

 private:
  // Returns the pair, as a fraction, that turns this often over the original context.
  static double PairWithTurns(const RopeConfig& config, double turns) {
    const double wavelength = static_cast<double>(config.original_context) / (turns * kTwoPi);
    return (static_cast<double>(config.dims) * exact_double::Log(wavelength)) /
           (2.0 * exact_double::Log(config.base));
  }

  double low_ = 0;
  double high_ = 0;
};

}  // namespace

RopeTable::RopeTable(const RopeConfig& config, const std::vector<float>& factors, int64_t positions)
    : magnitude_(config.magnitude), n_kept_(std::clamp<int64_t>(positions, 0, kMostKept)) {
  const double log_base = exact_double::Log(config.base);
  const YarnMix mix(config);
  const int64_t pairs = config.dims / 2;
  for (int64_t i = 0; i < pairs; ++i) {
    const double exponent = static_cast<double>(2 * i) / static_cast<double>(config.dims);
    const double own = exact_double::Exp(-(exponent * log_base));
    double frequency = own * config.position_scale;
    if (config.scaling == RopeScalingType::kYarn) {
      const double share = mix.Share(i);
      frequency = frequency * (1.0 - share) + own * share;
    }
    if (!factors.empty())
      frequency = frequency / static_cast<double>(factors[static_cast<size_t>(i)]);
    frequencies_.push_back(frequency);
  }
  const auto rows = static_cast<size_t>(n_kept_);
  kept_ = std::make_unique_for_overwrite<float[]>(rows * 2 * frequencies_.size());
  states_ = std::make_unique<std::atomic<RowState>[]>(rows);
}

void RopeTable::Row(int64_t position, float* out) const {
  if (position < 0 || position >= n_kept_) return Compute(position, out);
  const size_t width = 2 * frequencies_.size();
  float* const row = kept_.get() + static_cast<size_t>(position) * width;
  std::atomic<RowState>& state = states_[static_cast<size_t>(position)];
  if (state.load(std::memory_order_acquire) == RowState::kKept) {
    std::copy_n(row, width, out);
    return;
  }
  Compute(position, out);
  RowState before = RowState::kUnknown;
  if (!state.compare_exchange_strong(before, RowState::kBeingWritten)) return;
  std::copy_n(out, width, row);
  state.store(RowState::kKept, std::memory_order_release);
}

void RopeTable::Compute(int64_t position, float* out) const {
  const size_t n = frequencies_.size();
  for (size_t i = 0; i < n; ++i) {
    double sine = 0, cosine = 0;
    exact_double::SinCos(static_cast<double>(position) * frequencies_[i], &sine, &cosine);
    out[i] = quant::Canon(static_cast<float>(cosine * magnitude_));
    out[n + i] = quant::Canon(static_cast<float>(sine * magnitude_));
  }
}

}  // namespace trine
