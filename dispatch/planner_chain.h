// The planner's problem as the searches want it: a chain of units, devices numbered from 0, prefix
// sums in place of lists, so that what a run of units costs is one subtraction.
#ifndef TRINE_DISPATCH_PLANNER_CHAIN_H_
#define TRINE_DISPATCH_PLANNER_CHAIN_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dispatch/placement.h"
#include "dispatch/planner_problem.h"

namespace trine::planner {

inline constexpr int kMostDevices = 8;  // the searches go over all sets of devices
inline constexpr int64_t kInfinite = int64_t{1} << 61;

using DeviceSet = uint32_t;
inline constexpr DeviceSet One(int device) { return DeviceSet{1} << device; }

// Sums up to each boundary: entry b is the sum of units [0, b).
using Prefix = std::vector<int64_t>;

// Reach[d][b]: the farthest end of a run that begins at boundary b and fits device d by itself; b
// where not one unit does. A run inside one that fits fits too, so the entries never decrease.
using Reach = std::vector<std::vector<int>>;

struct ChainDevice {
  size_t index = 0;  // into PlanProblem::devices
  Prefix time;       // of the nominal request
  int64_t run_ns = 0;
  Prefix domain_time;
  Prefix bytes;
  int64_t fixed_bytes = 0;
  int64_t limit_bytes = 0;  // its own and its pool's
  Prefix layers;
  int64_t max_layers = 0;
  int64_t max_units = 0;
  Prefix cannot;  // units it can't run
  int64_t tied_bytes = 0;
  bool cpu = false;
};

// Something that several devices draw on: a memory pool, or a bandwidth domain.
struct ChainGroup {
  DeviceSet members = 0;
  int64_t capacity = 0;
  bool held_to_level = false;  // the capacity is the level of planner_bottleneck.h
  std::vector<Prefix> used;    // [device]; empty for others than the members
  std::vector<int64_t> fixed;  // [device]: once, when the device is used

  int64_t Use(int d, int begin, int end) const { return fixed[d] + used[d][end] - used[d][begin]; }
  // Members are in use and others may follow: what is used so far still matters.
  bool Open(DeviceSet in_use) const { return (in_use & members) != 0 && (members & ~in_use) != 0; }
};
inline constexpr int kMostGroups = kMostDevices;  // pairs of devices, in pools and in domains

struct Chain {
  int units = 0;
  std::vector<bool> cut;  // [boundary]: a segment may begin or end there
  std::vector<ChainDevice> devices;
  std::vector<std::vector<int64_t>> transfer;  // [from][to]
  std::vector<ChainGroup> pools;    // only those that can bind where no member breaks its own limit
  std::vector<ChainGroup> domains;  // capacity: set by the search
  // [device]: an earlier one that it could change places with, with no difference to anything; -1
  // where there is none. By the rule for ties the earlier one comes first in a placement.
  std::vector<int> twin;

  bool MayFollow(DeviceSet in_use, int d) const {
    return (in_use & One(d)) == 0 && (twin[d] < 0 || (in_use & One(twin[d])) != 0);
  }
  int n() const { return static_cast<int>(devices.size()); }
  DeviceSet All() const { return One(n()) - 1; }
  bool Fits(int d, int begin, int end) const;  // limits of the device alone
  Reach MemoryReach() const;
  // Devices that hold the whole model only because both ends share a matrix.
  std::vector<int> WholeWhenTied() const;
};

// Keeps to boundaries where the chain may be cut. fits(d, b, e) must hold for what is inside a run
// for which it holds.
template <typename F>
Reach MakeReach(const Chain& chain, const F& fits) {
  Reach reach(chain.n(), std::vector<int>(chain.units + 1));
  for (int d = 0; d < chain.n(); ++d) {
    int end = 0;
    for (int b = 0; b <= chain.units; ++b) {
      if (end < b) end = b;
      while (end < chain.units && fits(d, b, end + 1)) ++end;
      int last = end;
      while (last > b && !chain.cut[last]) --last;
      reach[d][b] = last;
    }
  }
  return reach;
}

// Devices and where their segments end, in model order: a placement, or the beginning of one.
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
  // The rule for ties: fewer segments, then devices in the order they were given, then earlier
  // ends.
  std::strong_ordering operator<=>(const Path&) const = default;
};

// Of the devices that may be used and can hold a unit, at most kMostDevices, in their order.
std::vector<size_t> SearchedDevices(const PlanProblem& problem, bool split_ends);

// `required`: a device that must be used, and so is unlike any other.
Chain MakeChain(const PlanProblem& problem, const NominalRequest& request,
                const std::vector<size_t>& devices, bool split_ends, DeviceSet required = 0);

std::vector<PlacedRange> RangesOf(const Chain& chain, const Path& path);

}  // namespace trine::planner

#endif  // TRINE_DISPATCH_PLANNER_CHAIN_H_
