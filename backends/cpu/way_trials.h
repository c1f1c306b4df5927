// Which way products of several columns go (kernels/cpu/tuning.h), found out on a model's own: the
// first ones of a kind go both ways in turns, whoever runs them, and are timed; the faster way is
// kept. Results are the same either way.
#ifndef TRINE_BACKENDS_CPU_WAY_TRIALS_H_
#define TRINE_BACKENDS_CPU_WAY_TRIALS_H_

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>

#include "kernels/cpu/tuning.h"
#include "kernels/quant/block_types.h"

namespace trine::cpu {

// Of products of one kind. Any thread may call anything at any time.
class WayTrial {
 public:
  // Of each way.
  static constexpr uint32_t kSamples = 9;

  struct Turn {
    cpu_kernels::Way way = cpu_kernels::Way::kUsual;
    uint32_t number = 2 * kSamples;

    bool timed() const { return number < 2 * kSamples; }
  };

  // How the next product, or a part of one, is to go. If it is timed, Tell must follow.
  Turn Next();

  // What the turn took, in any unit that is the same for all of a kind.
  void Tell(const Turn& turn, uint64_t time);

  // kUsual until all turns have been told.
  cpu_kernels::Way chosen() const { return chosen_.load(std::memory_order_relaxed); }

 private:
  void Choose();

  std::atomic<cpu_kernels::Way> chosen_{cpu_kernels::Way::kUsual};
  std::atomic<uint32_t> begun_{0};
  std::atomic<uint32_t> told_{0};
  std::array<std::atomic<uint64_t>, 2 * kSamples> times_{};  // by turn
};

// Of products with weights of one shape, by their number of columns.
class ShapeTrials {
 public:
  // `columns`: at least 2.
  WayTrial& For(int64_t columns);

 private:
  // Each number of columns up to 16; up to 32; up to 64; more.
  std::array<WayTrial, 18> trials_;
};

class WayTrials {
 public:
  struct Shape {
    quant::Type type;
    bool packed;
    int64_t k, n;

    auto operator<=>(const Shape&) const = default;
  };

  // Stays where it is for as long as this does.
  ShapeTrials& Of(const Shape& shape);

 private:
  std::mutex mutex_;
  std::map<Shape, ShapeTrials> shapes_;
};

}  // namespace trine::cpu

#endif  // TRINE_BACKENDS_CPU_WAY_TRIALS_H_
