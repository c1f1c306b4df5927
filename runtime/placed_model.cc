#include "runtime/placed_model.h"

#include <map>

namespace trine {
namespace {

uint64_t Share(uint64_t bytes, int64_t part, int64_t whole) {
  if (whole == 0) return bytes;
  return static_cast<uint64_t>(static_cast<double>(bytes) * static_cast<double>(part) /
                               static_cast<double>(whole));
}

}  // namespace

PlacedModel Describe(const Model& model) {
  PlacedModel placed;
  if (model.places().empty()) return placed;
  std::map<std::string, int64_t> layers;  // by device
  int64_t all = 0;
  for (const SegmentPlace& place : model.places()) {
    layers[place.device_name] += place.span.end - place.span.begin;
    all += place.span.end - place.span.begin;
  }
  std::map<std::string, uint64_t> weights;
  for (const DeviceWeights& w : model.weights()) {
    weights[w.device_name] =
        w.plain.file + w.plain.arena + w.plain.copied + w.plain.converted + w.packed_bytes;
  }
  for (const SegmentPlace& place : model.places()) {
    const int64_t mine = place.span.end - place.span.begin;
    PlacedSegment segment;
    segment.device = place.device_name;
    segment.chip = place.device->info().name;
    segment.span = place.span;
    segment.weight_bytes = Share(weights[place.device_name], mine, layers[place.device_name]);
    segment.kv_bytes = Share(model.kv_bytes(), mine, all);
    segment.scratch_bytes = Share(model.scratch_bytes(), mine, all);
    placed.segments.push_back(std::move(segment));
  }
  return placed;
}

}  // namespace trine
