// What the devices that are left can still do for the beginning of a placement: whether they can
// take it to the last unit, and how.
#ifndef TRINE_DISPATCH_PLANNER_AHEAD_H_
#define TRINE_DISPATCH_PLANNER_AHEAD_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "dispatch/planner_chain.h"
#include "dispatch/planner_relaxed.h"

namespace trine::planner {

using GroupUse = std::array<int64_t, kMostGroups>;  // [group]: of those that are open

class Ahead {
 public:
  explicit Ahead(const SumProblem& problem);

  // The first boundary from which the set's devices can place the rest, groups aside.
  int Needed(DeviceSet set) const { return needed_[set]; }
  // The farthest boundary the set's devices can get to from the first unit, groups aside.
  int Farthest(DeviceSet set) const { return farthest_[set]; }

  // False where no placement goes on from here. Each device that may yet draw on an open group is
  // looked at by itself, as if no other did: whatever is placed before it gets no farther than
  // those devices can, and what comes after it begins no earlier than those need. So it has at
  // least the units between, and the group has to hold them.
  bool MayEnd(DeviceSet in_use, int boundary, const GroupUse& used);
  // After MayEnd: the placement it had in mind, if that keeps to every limit.
  std::optional<Path> Finish(const Path& path, DeviceSet in_use, int boundary);

  uint64_t steps() const { return steps_; }
  // The least that was refused for being more than a group held to the level has.
  int64_t refused() const { return refused_; }

 private:
  void FillNeeded();
  const std::vector<uint16_t>& FarFrom(DeviceSet set);
  bool MayTake(int d, DeviceSet others, int boundary, const GroupUse& used);
  bool Holds(int d, int begin, int end, const GroupUse& used);
  void Advance(DeviceSet set, int boundary, Path& path);
  void Conclude(DeviceSet set, int boundary, Path& path) const;
  bool Allowed(const Path& path) const;

  const SumProblem& problem_;
  const Chain& chain_;
  std::vector<std::vector<int>> earliest_;  // [device][end]: the first beginning of a run to there
  std::vector<int> needed_;                 // [set]
  std::vector<int> farthest_;               // [set]
  std::vector<std::vector<uint16_t>> far_;  // [set][boundary]: as far as they get; empty: not yet
  std::vector<std::vector<size_t>> groups_of_;  // [device]
  int middle_ = -1;                             // what MayEnd found last: the device, and
  DeviceSet before_ = 0;                        // those that go before it
  uint64_t steps_ = 0;
  int64_t refused_ = kInfinite;
};

}  // namespace trine::planner

#endif  // TRINE_DISPATCH_PLANNER_AHEAD_H_
