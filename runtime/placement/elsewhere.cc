#include "runtime/placement/elsewhere.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/model/arch/read_model.h"
#include "runtime/model/split/tensor_places.h"
#include "runtime/model/weights/memory_check.h"

namespace trine {
namespace {

absl::StatusOr<NamedDevice> Open(const std::string& name, DeviceSet* devices) {
  auto device = devices->Open(name);
  if (!device.ok()) return device.status();
  return NamedDevice{*std::move(device), name};
}

absl::StatusOr<TensorPlaces> OpenPlaces(const ModelPlaces& places, DeviceSet* devices) {
  TensorPlaces opened;
  for (const DeviceShare& share : places.rows) {
    auto device = Open(share.device, devices);
    if (!device.ok()) return device.status();
    opened.rows.push_back({*std::move(device), share.share});
  }
  for (const auto& [tensor, name] : places.tensors) {
    auto device = Open(name, devices);
    if (!device.ok()) return device.status();
    opened.tensors.emplace(tensor, *std::move(device));
  }
  return opened;
}

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

size_t IndexOf(const PlanProblem& problem, const std::string& name) {
  size_t i = 0;
  while (i < problem.devices.size() && problem.devices[i].name != name) ++i;
  return i;
}

// Recomputes which devices and pools have too little memory.
void CheckAgain(Placement* placement) {
  placement->violations.clear();
  const auto check = [&](const char* what, const MemoryUse& use) {
    if (use.used_bytes <= use.available_bytes) return;
    placement->violations.push_back(absl::StrCat(what, use.name, " needs ",
                                                 BytesText(use.used_bytes), " and has ",
                                                 BytesText(use.available_bytes)));
  };
  for (const MemoryUse& use : placement->devices) check("", use);
  for (const MemoryUse& use : placement->pools) check("pool ", use);
}

}  // namespace

absl::StatusOr<std::vector<MovedWeights>> FindMovedWeights(const gguf::File& file,
                                                           const ModelConfig& config,
                                                           const SegmentLimits& limits,
                                                           const ModelPlaces& places,
                                                           DeviceSet* devices) {
  std::vector<MovedWeights> all;
  const auto tensors = OpenPlaces(places, devices);
  if (!tensors.ok()) return tensors.status();
  for (size_t i = 0; i < places.ranges.size(); ++i) {
    const LayerRange& range = places.ranges[i];
    auto home = Open(range.device, devices);
    if (!home.ok()) return home.status();
    SegmentPlace place;
    place.device = home->device;
    place.device_name = range.device;
    place.span = {range.begin, range.end, range.embedding, range.head};
    const auto graph = BuildSegmentGraph(file, config, limits, place.span, {.finish = false});
    if (!graph.ok()) return graph.status();
    Counter counter(i);
    counter.Add(*graph, FindOwners(place, *graph, *tensors));
    for (MovedWeights& moved : counter.Take()) all.push_back(std::move(moved));
  }
  return all;
}

void CountMoved(const std::vector<MovedWeights>& moved, const PlanProblem& problem,
                Placement* placement) {
  const auto use = [&](size_t device, uint64_t more, uint64_t less) {
    for (MemoryUse* memory :
         {&placement->devices[device], &placement->pools[problem.devices[device].pool]}) {
      memory->used_bytes += more;
      memory->used_bytes -= std::min(memory->used_bytes, less);
    }
  };
  std::set<size_t> used;
  for (const PlacementSegment& segment : placement->segments) used.insert(segment.range.device);
  for (const MovedWeights& one : moved) {
    const size_t to = IndexOf(problem, one.device);
    if (one.range >= placement->segments.size() || to == problem.devices.size()) continue;
    PlacementSegment& segment = placement->segments[one.range];
    // The weight may have had another size when it was packed for its device.
    const uint64_t less = std::min(one.bytes, segment.weight_bytes);
    segment.weight_bytes -= less;
    use(segment.range.device, 0, less);
    use(to, one.bytes + (used.insert(to).second ? problem.devices[to].fixed_bytes : 0), 0);
    std::erase_if(placement->left_out, [&](const LeftOutDevice& out) { return out.device == to; });
  }
  CheckAgain(placement);
}

}  // namespace trine
