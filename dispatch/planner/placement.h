// A placement with its report: which units of a model are on which device, how much memory they
// take, and how long passes are predicted to take. Placements that the planner found and placements
// that the user asked for have the same report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/devices/layer_span.h"
#include "dispatch/planner/problem.h"

namespace trine {

// A span on a device of the problem, in one of its modes.
struct PlacedRange : LayerSpan {
  size_t device = 0;  // index into PlanProblem::devices

  bool operator==(const PlacedRange&) const = default;
};

// The parts of a segment's layers that another device has.
struct SegmentShare {
  size_t device = 0;  // index into PlanProblem::devices
  uint64_t bytes = 0;
  int64_t decode_ns = 0;  // how long one pass keeps the device busy; the segment's time counts it
  int64_t prefill_ns = 0;
};

struct PlacementSegment {
  PlacedRange range;
  uint64_t weight_bytes = 0;
  uint64_t kv_bytes = 0;
  int64_t decode_ns = 0;  // the time of one pass, without the transfer from the segment before
  int64_t prefill_ns = 0;
  int64_t decode_transfer_ns = 0;  // the time of that transfer
  int64_t prefill_transfer_ns = 0;
  std::vector<SegmentShare> elsewhere;
  std::string bound;   // what decides the segment's size: a limit, or the times alone
  std::string change;  // what lifting that limit would bring; "" if nothing was found
};

struct MemoryUse {
  std::string name;
  uint64_t used_bytes = 0;
  uint64_t available_bytes = kNoLimit;
};

struct LeftOutDevice {
  size_t device = 0;
  std::string reason;
};

struct Placement {
  std::vector<PlacementSegment> segments;  // in model order
  std::vector<LeftOutDevice> left_out;
  std::vector<MemoryUse> devices;       // one per entry of the problem; modes use their device's
  std::vector<MemoryUse> pools;         // one per pool
  std::vector<std::string> violations;  // limits that are broken; the planner breaks none

  int64_t decode_ns = 0;  // one pass through all segments, transfers included
  int64_t prefill_ns = 0;
  int64_t request_ns = 0;  // the nominal request, alone
  // The time per nominal request if enough requests are in flight to keep every stage busy: the
  // time of the busiest device, transfer or bandwidth domain.
  int64_t cycle_ns = 0;
  int64_t longest_stage_ns = 0;  // the busiest device alone

  bool exact = true;          // the search over the searched devices was not cut short
  uint64_t search_steps = 0;  // the work of the search
};

// Predicts a placement's times and checks its limits. The ranges must be in model order and cover
// every layer once; a range without units is ignored. If no range has the embedding, it goes with
// the first range; if none has the head, it goes with the last. A device may have several ranges.
// Returns INVALID_ARGUMENT if the ranges don't cover the model, or if a device can't run its part.
// If memory does not suffice, the report has a violation.
absl::StatusOr<Placement> EvaluatePlacement(const PlanProblem& problem,
                                            const NominalRequest& request,
                                            std::vector<PlacedRange> ranges);

// Adds a violation for each device and pool whose memory does not suffice.
void AddMemoryViolations(Placement* placement);

// Formats "1.5 GiB", "12.0 MiB", "300 B".
std::string BytesText(uint64_t bytes);
// Formats "12.3 ms", "1.20 s", "450.0 us".
std::string TimeText(int64_t ns);

}  // namespace trine
