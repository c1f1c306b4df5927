// The times that devices spend in one run of a stage. Allocates nothing, because it is filled for
// every pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trine {

class DeviceTimes {
 public:
  struct One {
    const char* device = nullptr;  // its name; lives as long as the stage
    uint64_t ns = 0;
  };
  static constexpr size_t kMost = 32;  // more than a machine has; further devices are left out

  void Add(const char* device, uint64_t ns) {
    if (count_ < kMost) times_[count_++] = {device, ns};
  }
  const One* begin() const { return times_.data(); }
  const One* end() const { return times_.data() + count_; }

 private:
  std::array<One, kMost> times_{};
  size_t count_ = 0;
};

}  // namespace trine
