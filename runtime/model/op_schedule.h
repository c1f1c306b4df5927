// The order in which the ops of a graph run when some of them are on other devices: in steps, each
// of which is a set of ops whose inputs are there when it begins or are made on the same device.
#ifndef TRINE_RUNTIME_MODEL_OP_SCHEDULE_H_
#define TRINE_RUNTIME_MODEL_OP_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dispatch/op_graph.h"

namespace trine {

// Rows [begin, end) of an op's weight on a device. Devices are numbered; 0 is the main one.
struct RowShare {
  size_t device = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// Who computes an op. Empty: the main device. One: that device, all of it, whatever its rows say.
// Several: each its rows, in order and without gaps.
using OpOwners = std::vector<RowShare>;

// What a slot holds from one write to the next.
struct SlotVersion {
  static constexpr size_t kHost = static_cast<size_t>(-1);
  SlotId slot = 0;
  size_t writer = kHost;        // an op, or kHost: it is there before the first step
  std::vector<size_t> readers;  // ops, also those that change a part of it
};

struct OpSchedule {
  std::vector<size_t> steps;  // of each op
  size_t n_steps = 0;
  std::vector<SlotVersion> versions;  // of all slots but weights, in the order of their writers
};

// `graph` is not finished: each temporary has a slot of its own. `owners` has an entry for each op.
// Products that read the same input are in one step where one of them is not the main device's
// alone, so that all devices are at work at once.
OpSchedule ScheduleOps(const OpGraph& graph, const std::vector<OpOwners>& owners);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_OP_SCHEDULE_H_
