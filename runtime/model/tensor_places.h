// Which devices compute the products of a segment, where that is not its own device alone: rows of
// all of them shared out, or single weights placed by name.
#ifndef TRINE_RUNTIME_MODEL_TENSOR_PLACES_H_
#define TRINE_RUNTIME_MODEL_TENSOR_PLACES_H_

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugins/handles.h"
#include "runtime/model/memory_check.h"
#include "runtime/model/op_schedule.h"
#include "runtime/model/segment_graph.h"

namespace trine {

struct NamedDevice {
  std::shared_ptr<Device> device;
  std::string name;
};

// The device that a pass waits for, as far as can be told.
struct BusyDevice {
  std::string name;
  // Since when, where it is one of several; else as long as the stage has the pass.
  std::optional<std::chrono::steady_clock::time_point> since;
};

struct DeviceRows {
  NamedDevice device;
  double share = 0;  // in proportion to the others'
};

struct TensorPlaces {
  std::vector<DeviceRows> rows;                // empty: matrices stay whole
  std::map<std::string, NamedDevice> tensors;  // by name; before the rows

  bool empty() const { return rows.empty() && tensors.empty(); }
};

struct SegmentOwners {
  std::vector<NamedDevice> devices;  // the segment's own first
  std::vector<OpOwners> ops;         // by their numbers in it

  bool elsewhere() const { return devices.size() > 1; }  // some of it
};

// Rows [begin, end) of `n` for each share, cut where a device that packs rows in groups loses
// little. Empty where a share comes to nothing.
std::vector<RowShare> CutRows(int64_t n, const std::vector<double>& shares);

// `graph` is not finished.
SegmentOwners FindOwners(const SegmentPlace& place, const SegmentGraph& graph,
                         const TensorPlaces& places);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_TENSOR_PLACES_H_
