#include "runtime/placement/elsewhere.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/model/arch/read_model.h"
#include "runtime/model/split/tensor_places.h"

namespace trine {
namespace {

// Adds up the moved weights of one range, each tensor once for each device.
class Counter {
 public:
  explicit Counter(size_t range) : range_(range) {}

  void Add(const SegmentGraph& graph, const SegmentOwners& owners) {
    for (size_t op = 0; op < owners.ops.size(); ++op) {
      for (const RowShare& share : owners.ops[op]) {
        if (share.device != 0) Add(graph, op, share, owners);
      }
    }
  }

  std::vector<MovedWeights> Take() {
    std::vector<MovedWeights> moved;
    for (auto& [device, one] : by_device_) moved.push_back(std::move(one));
    return moved;
  }

 private:
  void Add(const SegmentGraph& graph, size_t op, const RowShare& share,
           const SegmentOwners& owners) {
    const TensorId weight = graph.graph.op(op).in[0];
    const auto use = std::find_if(graph.weights.begin(), graph.weights.end(),
                                  [&](const WeightUse& w) { return w.tensor == weight; });
    const std::string& name = owners.devices[share.device].name;
    if (use == graph.weights.end() || !seen_.emplace(use->info, name).second) return;
    MovedWeights& one =
        by_device_.try_emplace(name, MovedWeights{range_, name, 0, 0, 0}).first->second;
    if (owners.ops[op].size() == 1) {
      ++one.whole;
      one.bytes += use->info->bytes;
      return;
    }
    ++one.parts;
    const int64_t rows = graph.graph.tensor(weight).dims[1];
    one.bytes += use->info->bytes / static_cast<uint64_t>(rows) *
                 static_cast<uint64_t>(share.end - share.begin);
  }

  const size_t range_;
  std::map<std::string, MovedWeights> by_device_;
  std::set<std::pair<const gguf::TensorInfo*, std::string>> seen_;
};

}  // namespace

absl::StatusOr<OpenedPlaces> OpenPlaces(const ModelPlaces& places, DeviceSet* devices) {
  absl::Status status;
  const auto open = [&](const std::string& name) -> NamedDevice {
    auto device = devices->Open(name);
    if (status.ok()) status = OnDevice(name, device.status());
    return {device.ok() ? *std::move(device) : nullptr, name};
  };
  OpenedPlaces opened;
  for (const LayerRange& range : places.ranges) {
    opened.segments.push_back({open(range.device).device, range.device, range});
  }
  for (const DeviceShare& d : places.rows) {
    opened.tensors.rows.push_back({open(d.device), d.share});
  }
  for (const auto& [tensor, device] : places.tensors) {
    opened.tensors.tensors.emplace(tensor, open(device));
  }
  opened.tensors.slots = places.slots;
  if (!status.ok()) return status;
  return opened;
}

absl::StatusOr<std::vector<MovedWeights>> FindMovedWeights(const gguf::File& file,
                                                           const ModelConfig& config,
                                                           const SegmentLimits& limits,
                                                           const ModelPlaces& places,
                                                           DeviceSet* devices) {
  std::vector<MovedWeights> all;
  const auto opened = OpenPlaces(places, devices);
  if (!opened.ok()) return opened.status();
  for (size_t i = 0; i < opened->segments.size(); ++i) {
    const SegmentPlace& place = opened->segments[i];
    const auto graph = BuildSegmentGraph(file, config, limits, place.span, {.finish = false});
    if (!graph.ok()) return graph.status();
    Counter counter(i);
    counter.Add(*graph, FindOwners(place, *graph, opened->tensors));
    for (MovedWeights& moved : counter.Take()) all.push_back(std::move(moved));
  }
  return all;
}

}  // namespace trine
