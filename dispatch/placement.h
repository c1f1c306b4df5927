// Which units of a model are on which device, with what that takes and how long it is predicted to
// take. The same report for a placement that was searched for and for one that was asked for.
#ifndef TRINE_DISPATCH_PLACEMENT_H_
#define TRINE_DISPATCH_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/planner_problem.h"

namespace trine {

// Layers [begin, end) on one device, with the embedding before them or the head after them. The
// range may be empty where it has an end of the model.
struct PlacedRange {
  size_t device = 0;  // index into PlanProblem::devices
  int begin = 0;
  int end = 0;
  bool embedding = false;
  bool head = false;

  bool operator==(const PlacedRange&) const = default;
};

struct PlacementSegment {
  PlacedRange range;
  uint64_t weight_bytes = 0;
  uint64_t kv_bytes = 0;
  int64_t decode_ns = 0;  // of one pass, the run included, the way in not
  int64_t prefill_ns = 0;
  int64_t decode_transfer_ns = 0;  // the way in
  int64_t prefill_transfer_ns = 0;
  std::string bound;   // the limit that keeps it from being otherwise, or that nothing does
  std::string change;  // what more of that would bring; empty where nothing was found
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
  std::vector<MemoryUse> devices;       // one per device of the problem
  std::vector<MemoryUse> pools;         // one per pool
  std::vector<std::string> violations;  // limits it breaks; empty for one that was searched for

  int64_t decode_ns = 0;  // one pass through all segments, transfers included
  int64_t prefill_ns = 0;
  int64_t request_ns = 0;  // the nominal request, alone
  // Per nominal request, with as many of them in flight as keep every stage busy: what the busiest
  // device, transfer or bandwidth domain needs.
  int64_t cycle_ns = 0;
  int64_t longest_stage_ns = 0;  // the busiest device alone

  bool exact = true;          // the search, over the devices it looked at, was not cut short
  uint64_t search_steps = 0;  // how much work it was
};

// Predicts and checks. The ranges are in model order and cover every layer once; empty ones without
// an end of the model are passed over. Where no range has the embedding it goes with the first, and
// the head with the last. A device may come more than once here. INVALID_ARGUMENT when they don't
// cover the model, or a device can't run what it is given; memory that does not suffice is a
// violation in the report.
absl::StatusOr<Placement> EvaluatePlacement(const PlanProblem& problem,
                                            const NominalRequest& request,
                                            std::vector<PlacedRange> ranges);

// "1.5 GiB", "12.0 MiB", "300 B".
std::string BytesText(uint64_t bytes);
// "12.3 ms", "1.20 s", "450 us".
std::string TimeText(int64_t ns);

}  // namespace trine

#endif  // TRINE_DISPATCH_PLACEMENT_H_
