// What the planner is given: the model as a chain of units, and for each device what each unit
// costs there in bytes and in time. Numbers only: nothing here knows a file or a driver.
//
// Units are the embedding (0), the layers (1 to n), and the output head (n + 1). A device has at
// most one run of neighbouring units, so the ends of the model may stand alone on a device, as
// layers may.
#ifndef TRINE_DISPATCH_PLANNER_PROBLEM_H_
#define TRINE_DISPATCH_PLANNER_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace trine {

// A time that says: this device can't run this unit.
inline constexpr int64_t kCannotRun = std::numeric_limits<int64_t>::max();
inline constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// The times of one kind of pass (a decode pass, or a prefill pass) on one device.
struct PassTimes {
  std::vector<int64_t> unit_ns;  // one per unit; what reading logits back costs is the head's
  // How long each unit keeps the device's bandwidth domain busy when it has it for itself. Empty:
  // not at all; no more than its time. Devices that work at once share the domain: these times
  // add up.
  std::vector<int64_t> domain_ns;
  int64_t run_ns = 0;  // for each run of a segment, whatever is in it
};

struct PlanDevice {
  std::string name;
  std::string tier;      // "cpu" is special to Strategy::kMemory, and to nothing else
  std::string left_out;  // why it must not be used ("lost", "not asked for"); empty: it may be
  size_t pool = 0;       // index into PlanProblem::pools
  size_t domain = 0;     // devices with the same number share bandwidth
  uint64_t limit_bytes = kNoLimit;
  uint64_t fixed_bytes = 0;  // scratch and buffers, when the device is used at all
  int max_layers = std::numeric_limits<int>::max();
  std::vector<uint64_t> weight_bytes;  // one per unit
  std::vector<uint64_t> kv_bytes;      // one per unit, at the context asked for; empty: none
  uint64_t tied_bytes = 0;  // counted once where both ends are here: a shared embedding matrix
  PassTimes decode;
  PassTimes prefill;
};

struct PlanPool {
  std::string name;
  uint64_t capacity_bytes = kNoLimit;
};

struct PlanProblem {
  int layers = 0;
  int prefill_tokens = 1;  // in one prefill pass
  std::vector<PlanDevice> devices;
  std::vector<PlanPool> pools;
  // [from][to]: handing the hidden state on, once per pass. The diagonal is not read.
  std::vector<std::vector<int64_t>> decode_transfer_ns;
  std::vector<std::vector<int64_t>> prefill_transfer_ns;

  int units() const { return layers + 2; }
};

// The request whose time is minimised.
struct NominalRequest {
  int prompt_tokens = 512;
  int written_tokens = 128;
};

// INVALID_ARGUMENT where sizes don't match, an index points nowhere, or sums could overflow.
absl::Status CheckProblem(const PlanProblem& problem, const NominalRequest& request);

// One unit's, run's or transfer's time in a nominal request. Each is rounded to a nanosecond before
// they are added, so that sums are exact and don't depend on their order.
int64_t RequestNs(const PlanProblem& problem, const NominalRequest& request, int64_t decode_ns,
                  int64_t prefill_ns);

// Bytes of the unit on the device, without what is counted once per device.
uint64_t UnitBytes(const PlanDevice& device, int unit);
bool CanRun(const PlanDevice& device, int unit);
int64_t DomainNs(const PassTimes& times, int unit);

}  // namespace trine

#endif  // TRINE_DISPATCH_PLANNER_PROBLEM_H_
