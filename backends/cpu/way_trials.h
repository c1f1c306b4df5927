// Finds out for a model's own products of several columns which of two ways is faster (Way in
// kernels/cpu/levels/kernel_table.h). The first products of a kind go both ways in turns, on
// whatever thread, and are timed. Later products go the faster way. Results are the same either
// way.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>

#include "kernels/cpu/levels/kernel_table.h"
#include "kernels/quant/block_types.h"

namespace trine::cpu {

// Times products of one kind and chooses their way. Any thread may call anything at any time.
class WayTrial {
 public:
  // The number of timed turns for each way.
  static constexpr uint32_t kSamples = 9;

  struct Turn {
    cpu_kernels::Way way = cpu_kernels::Way::kUsual;
    uint32_t number = 2 * kSamples;

    bool timed() const { return number < 2 * kSamples; }
  };

  // Returns the way of the next product, or of a part of one. If the turn is timed, call Tell after
  // the product.
  Turn Next();

  // Reports how long the turn took, in any unit that is the same for all products of a kind.
  void Tell(const Turn& turn, uint64_t time);

  // Returns kUsual until all turns have been reported.
  cpu_kernels::Way chosen() const { return chosen_.load(std::memory_order_relaxed); }

 private:
  void Choose();

  std::atomic<cpu_kernels::Way> chosen_{cpu_kernels::Way::kUsual};
  std::atomic<uint32_t> begun_{0};
  std::atomic<uint32_t> told_{0};
  std::array<std::atomic<uint64_t>, 2 * kSamples> times_{};  // by turn
};

// Holds the trials for weights of one shape: one trial for each range of column counts.
class ShapeTrials {
 public:
  // `columns`: at least 2.
  WayTrial& For(int64_t columns);

 private:
  // A trial for each number of columns up to 16, one for 17 to 32, one for 33 to 64, one for more.
  std::array<WayTrial, 18> trials_;
};

// Holds the trials of all shapes that the process has multiplied.
class WayTrials {
 public:
  struct Shape {
    quant::Type type;
    bool packed;
    int64_t k, n;

    auto operator<=>(const Shape&) const = default;
  };

  // Returns the trials of a shape, which live as long as this object. Any thread may call.
  ShapeTrials& Of(const Shape& shape);

 private:
  std::mutex mutex_;
  std::map<Shape, ShapeTrials> shapes_;
};

}  // namespace trine::cpu
