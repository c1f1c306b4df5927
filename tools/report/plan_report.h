// A placement for people, programs and the eye: what `trine plan` prints.
#ifndef TRINE_TOOLS_REPORT_PLAN_REPORT_H_
#define TRINE_TOOLS_REPORT_PLAN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/placement/placer.h"

namespace trine {

// What running it took, by segment and in all, in nanoseconds of one pass.
struct MeasuredPass {
  std::vector<double> segment_ns;
  double all_ns = 0;
};

struct PlanReport {
  std::string model;  // its file
  int64_t context = 0;
  PlacementReport report;
  std::optional<MeasuredPass> decode;  // with --measure
  std::optional<MeasuredPass> prefill;
};

// "embedding + layers 0-15", "head": what a segment has.
std::string DescribeSegment(const PlacedRange& range);

// `layers`: a row for each of them, not for each segment.
std::string FormatPlan(const PlanReport& report, bool layers);
std::string FormatPlanJson(const PlanReport& report);
// An SVG picture: the model as a strip of layers coloured by device, times and memory as bars.
std::string FormatPlanPicture(const PlanReport& report);

}  // namespace trine

#endif  // TRINE_TOOLS_REPORT_PLAN_REPORT_H_
