// The planner's problem as the searches need it: a chain of units, devices numbered from 0, and
// prefix sums. With these, the cost of a run of units is one subtraction. A mode of a device is a
// device of its own here, which shares memory and time with the device's other entries.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dispatch/planner/placement.h"
#include "dispatch/planner/problem.h"

namespace trine::planner {

inline constexpr int kMostDevices = 8;  // the searches go over all sets of devices
inline constexpr int64_t kInfinite = int64_t{1} << 61;

using DeviceMask = uint32_t;
inline constexpr DeviceMask One(int device) { return DeviceMask{1} << device; }

// Sums up to each boundary: entry b is the sum of units [0, b).
using Prefix = std::vector<int64_t>;

// Reach[d][b]: the farthest end of a run that begins at boundary b and fits device d by itself; b
// if no unit fits. If a run fits, each part of it fits, so the entries never decrease.
using Reach = std::vector<std::vector<int>>;

struct ChainDevice {
  size_t index = 0;  // into PlanProblem::devices
  Prefix time;       // of the nominal request
  int64_t run_ns = 0;
  Prefix domain_time;
  Prefix bytes;
  int64_t fixed_bytes = 0;
  int64_t limit_bytes = 0;  // the device's own limit and its pool's
  Prefix cannot;            // 1 for each unit that the device can't run
  int64_t tied_bytes = 0;
  bool cpu = false;
  bool mode = false;  // not a device's first entry
};

// Something that several entries share: a memory pool, the memory or the time of a device with
// modes, or a bandwidth domain.
struct ChainGroup {
  DeviceMask members = 0;
  int64_t capacity = 0;
  std::vector<Prefix> used;    // [device]: what its units use; empty unless it is a member
  std::vector<int64_t> fixed;  // [device]: counted once, if the device is used

  int64_t Use(int d, int begin, int end) const { return fixed[d] + used[d][end] - used[d][begin]; }
  // Returns whether some members are in use and others are not yet. Then the group's use so far
  // limits what can follow.
  bool Open(DeviceMask in_use) const { return (in_use & members) != 0 && (members & ~in_use) != 0; }
};

// The devices and the ends of their segments, in model order: a placement, or the beginning of one.
struct Path {
  int size = 0;
  std::array<uint8_t, kMostDevices> device{};
  std::array<uint16_t, kMostDevices> end{};

  Path With(int d, int boundary) const {
    Path longer = *this;
    longer.device[size] = static_cast<uint8_t>(d);
    longer.end[size] = static_cast<uint16_t>(boundary);
    ++longer.size;
    return longer;
  }
  // Calls f(device, begin, end) for each segment.
  template <typename F>
  void ForEach(const F& f) const {
    for (int i = 0; i < size; ++i) f(device[i], i == 0 ? 0 : end[i - 1], end[i]);
  }
  // Orders by the rule for ties: fewer segments, then devices in their order, then earlier ends.
  std::strong_ordering operator<=>(const Path&) const = default;
};

struct Chain {
  int units = 0;
  std::vector<ChainDevice> devices;
  std::vector<std::vector<int64_t>> transfer;  // [from][to]
  // The memory that may be too small for its members together: pools, and devices with modes.
  std::vector<ChainGroup> pools;
  // Bandwidth, and the time of devices with modes. Capacity: set by the search.
  std::vector<ChainGroup> domains;
  std::vector<ChainGroup> workers;
  // [device]: an earlier device that is exactly like it; -1 if there is none. By the rule for ties
  // the earlier device comes first in a placement.
  std::vector<int> twin;

  bool MayFollow(DeviceMask in_use, int d) const {
    return (in_use & One(d)) == 0 && (twin[d] < 0 || (in_use & One(twin[d])) != 0);
  }
  int n() const { return static_cast<int>(devices.size()); }
  DeviceMask All() const { return One(n()) - 1; }
  // Returns placements of the whole model on one device that fit only because embedding and head
  // share a matrix, which searches count twice.
  std::vector<Path> WholeWhenTied() const;
  Reach MemoryReach() const;  // of the devices' own limits
};

// Makes the Reach for `fits`. REQUIRES: if fits(d, b, e) holds, it holds for every run inside
// [b, e).
template <typename F>
Reach MakeReach(const Chain& chain, const F& fits) {
  Reach reach(chain.n(), std::vector<int>(chain.units + 1));
  for (int d = 0; d < chain.n(); ++d) {
    int end = 0;
    for (int b = 0; b <= chain.units; ++b) {
      if (end < b) end = b;
      while (end < chain.units && fits(d, b, end + 1)) ++end;
      reach[d][b] = end;
    }
  }
  return reach;
}

// Returns how much of the group the placement uses.
int64_t UseOf(const ChainGroup& group, const Path& path);

// Returns the entries that may be used and can hold a unit, in their order, at most kMostDevices.
// Strategy::kMemory has no use for modes.
std::vector<size_t> SearchedDevices(const PlanProblem& problem, Strategy strategy);

// Makes the chain of a problem for these devices. `required`: devices that must be used; they have
// no twins.
Chain MakeChain(const PlanProblem& problem, const NominalRequest& request,
                const std::vector<size_t>& devices, DeviceMask required = 0);

// Returns the path as ranges of layers on devices of the problem.
std::vector<PlacedRange> RangesOf(const Chain& chain, const Path& path);

}  // namespace trine::planner
