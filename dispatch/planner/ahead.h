// Says whether a beginning of a placement can be completed with the devices that it does not use
// yet, and how.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "dispatch/planner/chain.h"
#include "dispatch/planner/relaxed.h"

namespace trine::planner {

// [group]: the amount used of it; 0 unless the group is open.
using GroupUse = std::array<int64_t, kMostGroups>;

class Ahead {
 public:
  explicit Ahead(const SumProblem& problem);

  // Returns the first boundary from which the set's devices can take all units to the end, if
  // groups limit nothing.
  int Needed(DeviceMask set) const { return needed_[set]; }

  // Returns false if no placement continues from here. Looks at each device that may still use an
  // open group, as if no other device used it. The devices before it reach at most a boundary b,
  // and the devices after it can place the rest only from a boundary e on. So it must take the
  // units from b to e, and the group must have room for them.
  bool MayEnd(DeviceMask in_use, int boundary, const GroupUse& used);
  // Call after MayEnd. Returns the placement that MayEnd found, if it keeps to every limit.
  std::optional<Path> Finish(const Path& path, DeviceMask in_use, int boundary);

  uint64_t steps() const { return steps_; }
  // Returns the least use that was refused because a group is held to a lower level.
  int64_t refused() const { return refused_; }

 private:
  void FillNeeded();
  const std::vector<uint16_t>& FarFrom(DeviceMask set);
  bool MayTake(int d, DeviceMask others, int boundary, const GroupUse& used);
  bool Holds(int d, int begin, int end, const GroupUse& used);
  void Advance(DeviceMask set, int boundary, Path& path);
  void Conclude(DeviceMask set, int boundary, Path& path) const;
  bool Allowed(const Path& path) const;

  const SumProblem& problem_;
  const Chain& chain_;
  // [device][end]: the first boundary from which a run up to `end` fits the device.
  std::vector<std::vector<int>> earliest_;
  std::vector<int> needed_;                 // [set]
  std::vector<std::vector<uint16_t>> far_;  // [set][boundary]: the farthest end; empty: not filled
  std::vector<std::vector<size_t>> groups_of_;  // [device]
  int middle_ = -1;                             // the device that MayEnd looked at last; -1: none
  DeviceMask before_ = 0;                       // the devices before middle_
  uint64_t steps_ = 0;
  int64_t refused_ = kInfinite;
};

}  // namespace trine::planner
