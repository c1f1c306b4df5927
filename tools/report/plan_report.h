// Formats a placement for `trine plan`: as text, as JSON and as a picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/devices/inventory.h"
#include "runtime/placement/placer.h"

namespace trine {

// The measured time of one pass, of each segment and of all together.
struct MeasuredPass {
  std::vector<double> segment_ns;
  double all_ns = 0;
};

struct PlanReport {
  std::string model;  // the path of the model's file
  int64_t context = 0;
  PlacementReport report;
  // Devices that --numerics fast would let the planner use, with the reason why it does not.
  std::vector<InventoryDevice> too_fast;
  std::optional<MeasuredPass> decode;   // nullopt without --measure
  std::optional<MeasuredPass> prefill;  // nullopt without --measure
};

// Returns the contents of a segment, such as "embedding + layers 0-15" or "head".
std::string DescribeSegment(const LayerSpan& range);
// Returns why a device has no layers: "igpu0 is left out: too slow".
std::string DescribeLeftOut(const PlacementReport& report, const LeftOutDevice& out);
std::string DescribeLeftOut(const InventoryDevice& device);

// Returns the slots for the experts that are the given part elsewhere of a segment; nullopt: the
// part is not on the CPU, has no experts, or the segment has no slots.
std::optional<PlannedSlots> SlotsOfPart(const PlacementReport& report, size_t segment, size_t part);

// Formats the placement as text. Writes a row for each layer if `layers` is true, and a row for
// each segment otherwise.
std::string FormatPlan(const PlanReport& report, bool layers);
std::string FormatPlanJson(const PlanReport& report);
// Returns an SVG picture: a strip of layers coloured by device, times and memory as bars.
std::string FormatPlanPicture(const PlanReport& report);

}  // namespace trine
