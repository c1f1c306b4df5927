#include "runtime/model/weights/memory_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dispatch/exec/segment.h"
#include "runtime/model/weights/packed_weights.h"

namespace trine {
namespace {

std::string Mebibytes(double bytes) {
  return absl::StrCat(static_cast<int64_t>(bytes / (1 << 20) + 0.5), " MiB");
}

// The weights that a device has, with their layouts. All of its segments, and all uses of a tied
// weight, share one copy.
using Held = std::set<std::pair<const gguf::TensorInfo*, uint64_t>>;

void Hold(const SegmentGraph& graph, Held* held) {
  for (const WeightUse& use : graph.weights) {
    held->emplace(use.info, use.packed ? use.packed->id() : TRINE_LAYOUT_PLAIN);
  }
}

bool HasLayouts(const SegmentGraph& graph) {
  return std::any_of(graph.weights.begin(), graph.weights.end(),
                     [](const WeightUse& use) { return use.packed.has_value(); });
}

// Returns the bytes of packed weights that the device does not hold yet. Returns a double, so that
// hostile sizes can't overflow.
double PackedBytes(const SegmentGraph& graph, Held held) {
  double bytes = 0;
  for (const WeightUse& use : graph.weights) {
    if (use.packed && held.emplace(use.info, use.packed->id()).second) {
      bytes += static_cast<double>(use.packed->packed_bytes());
    }
  }
  return bytes;
}

// Returns the bytes of a file in memory that packing releases, because nothing reads them
// afterwards. Counts a tensor for the first segment of its device that uses it.
double ReleasedBytes(size_t segment, const std::vector<SegmentPlace>& places,
                     const std::vector<SegmentGraph>& graphs) {
  std::set<const gguf::TensorInfo*> released;
  for (const WeightUse& use : graphs[segment].weights) {
    if (use.packed) released.insert(use.info);
  }
  for (size_t i = 0; i < graphs.size(); ++i) {
    const bool elsewhere = i < segment || places[i].device != places[segment].device;
    for (const WeightUse& use : graphs[i].weights) {
      if (!use.packed || elsewhere) released.erase(use.info);
    }
  }
  double bytes = 0;
  for (const gguf::TensorInfo* tensor : released) bytes += static_cast<double>(tensor->bytes);
  return bytes;
}

// Returns whether the system can drop the pages of a file that the device reads weights in, and
// read them again later. It can't if a driver pins pages that it imports.
bool PagesCanBeDropped(const Device& device) {
  return ExpectedWeightPath(device.info()) == WeightPath::kFile &&
         device.info().tier == TRINE_TIER_CPU;
}

// Returns the bytes of plain weights that the device does not hold yet.
double PlainBytes(const SegmentGraph& graph, const Device& device, Held held) {
  if (PagesCanBeDropped(device)) return 0;
  double bytes = 0;
  for (const WeightUse& use : graph.weights) {
    if (!use.packed && held.emplace(use.info, TRINE_LAYOUT_PLAIN).second) {
      bytes += static_cast<double>(use.info->bytes);
    }
  }
  return bytes;
}

// The memory that the segments of a device need together.
struct Needs {
  double kv = 0, weights = 0, scratch = 0;
  bool scratch_known = true;

  double All() const { return kv + weights + scratch; }
};

// Counts only once the caches, the scratch and the IO memory that pieces of one segment share.
class SharedMemory {
 public:
  double AddCaches(const SegmentPlace& place, const SegmentGraph& graph) {
    double bytes = 0;
    for (const KvUse& use : graph.caches) {
      const bool is_new = place.segment == SegmentPlace::kAlone ||
                          caches_.emplace(place.segment, use.number).second;
      if (is_new) bytes += static_cast<double>(graph.graph.Bytes(use.tensor));
    }
    return bytes;
  }

  double AddScratch(const SegmentPlace& place, const SegmentNeeds& needs) {
    const auto scratch = static_cast<double>(needs.scratch_bytes);
    if (place.segment == SegmentPlace::kAlone) {
      return scratch + static_cast<double>(needs.io_bytes);
    }
    const auto [found, is_new] = most_.try_emplace({place.device.get(), place.segment}, 0);
    const double more = std::max(0.0, scratch - found->second);
    found->second += more;
    return more + (is_new ? static_cast<double>(place.shared_io_bytes) : 0);
  }

 private:
  std::map<std::pair<const Device*, size_t>, double> most_;  // scratch, by device and segment
  std::set<std::pair<size_t, size_t>> caches_;               // segment and number
};

absl::Status TooMuch(const std::string& device, double free, const Needs& needs) {
  std::string weights = ", beside weights in the file's own pages";
  if (needs.weights > 0) weights = absl::StrCat(" and ", Mebibytes(needs.weights), " for weights");
  return absl::ResourceExhaustedError(
      absl::StrCat(device, " has ", Mebibytes(free), " of memory free, but ",
                   needs.scratch_known ? "" : "at least ", Mebibytes(needs.All()), " are needed, ",
                   Mebibytes(needs.kv), " of them for the KV cache", weights,
                   ": a smaller context or cache type takes less"));
}

}  // namespace

absl::Status CheckMemory(const std::vector<SegmentPlace>& places, std::vector<SegmentGraph>* graphs,
                         bool file_mapped, bool packed_in_file, uint64_t border_bytes,
                         const std::function<void(const std::string&)>& warn) {
  std::map<const Device*, Needs> needed;
  for (const SegmentPlace& place : places) {
    if (place.device->info().tier != TRINE_TIER_CPU) continue;
    needed[place.device.get()].scratch = static_cast<double>(border_bytes);
  }
  std::map<const Device*, double> released;
  std::map<const Device*, Held> held;
  SharedMemory shared;
  for (size_t i = 0; i < places.size(); ++i) {
    const Device& device = *places[i].device;
    SegmentGraph& graph = (*graphs)[i];
    const auto free_now = static_cast<double>(device.info().memory_free);
    const bool holds_file =
        !file_mapped && (device.info().flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0;
    double free = 0;  // 0: unknown
    const auto look = [&] {
      if (free_now == 0) return;
      free = free_now + released[&device];
      if (holds_file) free += ReleasedBytes(i, places, *graphs);
    };
    look();
    Needs base = needed[&device];
    base.kv += shared.AddCaches(places[i], graph);
    double packed = PackedBytes(graph, held[&device]);
    base.scratch_known = free == 0 || base.kv <= free;  // false: the caches alone are too much
    if (base.scratch_known) {
      auto segment = Segment::Query(device, graph.graph);
      if (!segment.ok() && HasLayouts(graph)) {
        const std::string why(segment.status().message());
        ClearLayouts(&graph);
        packed = 0;
        look();
        segment = Segment::Query(device, graph.graph);
        if (segment.ok()) {  // otherwise the layouts are not the cause
          warn(absl::StrCat(places[i].device_name,
                            ": weights stay as in the file, since with packed "
                            "ones the device says: ",
                            why));
        }
      }
      if (!segment.ok()) return segment.status();
      base.scratch += shared.AddScratch(places[i], *segment);
    }
    const bool counted = !packed_in_file || !PagesCanBeDropped(device);
    const auto take = [&] {
      Needs all = base;
      all.weights += PlainBytes(graph, device, held[&device]) + (counted ? packed : 0);
      return all;
    };
    if (free != 0 && packed != 0 && counted && take().All() > free) {
      const double with_packed = take().All();
      ClearLayouts(&graph);
      packed = 0;
      look();
      if (take().All() <= free) {  // otherwise TooMuch reports it
        warn(absl::StrCat(places[i].device_name, " has ", Mebibytes(free), " of memory free, but ",
                          Mebibytes(with_packed), " are needed with packed weights: they stay as ",
                          "in the file, which is slower"));
      }
    }
    needed[&device] = take();
    Hold(graph, &held[&device]);
    if (holds_file) released[&device] += ReleasedBytes(i, places, *graphs);
    if (free != 0 && needed[&device].All() > free) {
      return TooMuch(places[i].device_name, free, needed[&device]);
    }
  }
  return absl::OkStatus();
}

}  // namespace trine
