// Finds out which of two ways of multiplying is faster: kDirect or kTiles (Way in
// kernels/cpu/levels/kernel_table.h). It depends on the machine and on the kind of product: the
// type and shape of the weights, and the number of columns.
//
// The first products of a kind, which a model computes anyway, take turns: one goes one way, the
// next goes the other, and each is timed. Later products go the faster way. Both ways have the same
// result, so no product is computed twice.
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

// Chooses the way of products of one kind, from the times that callers measure. Any thread may call
// anything at any time.
class WayTrial {
 public:
  // The number of timed turns for each way.
  static constexpr uint32_t kSamples = 9;

  // What Next returns: the way to go, and the turn's number. Turns from 2 * kSamples on are not
  // timed.
  struct Turn {
    cpu_kernels::Way way = cpu_kernels::Way::kUsual;
    uint32_t number = 2 * kSamples;

    bool timed() const { return number < 2 * kSamples; }
  };

  // Returns the way of the caller's product, or of the caller's part of a product. If the turn is
  // timed(), the caller must measure it and call Tell once; without that no way is ever chosen.
  Turn Next();

  // Reports the time that a turn took per unit of work, because parts of products differ in size.
  // The unit is the same for all products of a kind. The last report chooses the way. REQUIRES:
  // turn.timed(), and Tell has not been called for this turn.
  void Tell(const Turn& turn, uint64_t time);

  // Returns the faster way; kUsual until all timed turns have been reported.
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
  // Returns the trial for products of so many columns. It lives as long as this object. REQUIRES:
  // `columns` is at least 2.
  WayTrial& For(int64_t columns);

 private:
  // A trial for each number of columns up to 16, one for 17 to 32, one for 33 to 64, one for more.
  std::array<WayTrial, 18> trials_;
};

// Holds the trials of all shapes of weights that a backend has multiplied. Each backend has one.
class WayTrials {
 public:
  struct Shape {
    quant::Type type;
    bool packed;
    int64_t k, n;          // n rows of k weights
    bool experts = false;  // one of many such matrices, of which most are in no cache

    auto operator<=>(const Shape&) const = default;
  };

  // Returns the trials of a shape, which live as long as this object. Any thread may call.
  ShapeTrials& Of(const Shape& shape);

 private:
  std::mutex mutex_;
  std::map<Shape, ShapeTrials> shapes_;
};

}  // namespace trine::cpu
