// Says which devices compute the products of a segment, if its own device does not compute all of
// them: devices share the rows of all products, or single weights are placed by name. Also orders
// the ops of a segment that runs on several devices.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/exec/op_graph.h"
#include "plugins/handles.h"
#include "runtime/model/arch/segment_graph.h"
#include "runtime/model/weights/memory_check.h"

namespace trine {

// Rows [begin, end) of an op's weight on a device. Device 0 is the main one.
struct RowShare {
  size_t device = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// The devices that compute an op. No entry: the main device. One entry: that device computes all
// rows, whatever `begin` and `end` are. Several entries: each device computes its rows; the rows
// are in order and without gaps.
using OpOwners = std::vector<RowShare>;

// The contents of a slot from one write to the next.
struct SlotVersion {
  static constexpr size_t kHost = static_cast<size_t>(-1);
  SlotId slot = 0;
  size_t writer = kHost;        // the op that writes it; kHost: written before the first step
  std::vector<size_t> readers;  // ops, including those that overwrite a part of it
};

// The steps in which the ops run. A step is a set of ops whose inputs are ready when the step
// begins, or are computed within the step on the same device.
struct OpSchedule {
  std::vector<size_t> steps;  // by op
  size_t n_steps = 0;
  std::vector<SlotVersion> versions;  // all slots but weights, in the order of their writers
};

// Puts the ops into steps. REQUIRES: graph.Finish() has not been called, so each temporary has a
// slot of its own. `owners` has an entry for each op. Products that read the same input go into one
// step if another device than the main one computes any of them, so that all devices work at the
// same time.
OpSchedule ScheduleOps(const OpGraph& graph, const std::vector<OpOwners>& owners);

struct NamedDevice {
  std::shared_ptr<Device> device;
  std::string name;
};

// The device that a pass waits for, as far as is known.
struct BusyDevice {
  std::string name;
  // The time when its call began, if several devices run the stage; nullopt: its call began when
  // the stage began the pass.
  std::optional<std::chrono::steady_clock::time_point> since;
};

// A device and its share of the rows of every matrix.
struct DeviceRows {
  NamedDevice device;
  double share = 0;  // relative to the other shares
};

// The weights that are not on the device of their layers.
struct TensorPlaces {
  std::vector<DeviceRows> rows;                // empty: matrices stay whole
  std::map<std::string, NamedDevice> tensors;  // by weight name; overrules `rows`
  // [layer]: how many of its experts are also on the layer's own device, if `tensors` has them
  // elsewhere.
  std::map<int64_t, int64_t> slots;

  bool empty() const { return rows.empty() && tensors.empty(); }
};

// The devices that compute the ops of a segment.
struct SegmentOwners {
  std::vector<NamedDevice> devices;  // the segment's own device first
  std::vector<OpOwners> ops;         // by op

  bool elsewhere() const { return devices.size() > 1; }  // some ops are on other devices
};

// Cuts `n` rows in proportion to `shares`. Cuts at multiples of some rows, because devices may pack
// rows in groups. `device` of a result is the index of its share; a share without rows is left out.
std::vector<RowShare> CutRows(int64_t n, const std::vector<double>& shares);

// Gives ops without weights to other devices than the main one where that saves moves: ops between
// products that one device computes, and the sum over experts if one device computes all of them.
// `runs(device, op)`: whether the device can run the op. REQUIRES: graph.Finish() has not been
// called; the owners of all products are known.
void JoinOps(const OpGraph& graph, const std::function<bool(size_t device, size_t op)>& runs,
             std::vector<OpOwners>* owners);

// Returns the owners of each op of `graph`. REQUIRES: graph.graph.Finish() has not been called.
SegmentOwners FindOwners(const SegmentPlace& place, const SegmentGraph& graph,
                         const TensorPlaces& places);

}  // namespace trine
