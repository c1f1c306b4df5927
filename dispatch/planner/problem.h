// The planner's input: the model as a chain of units, and for each device the bytes and the time of
// each unit there. Numbers only, without files or drivers.
//
// Units are the embedding (0), the layers (1 to n), and the output head (n + 1). A device gets at
// most one run of neighbouring units. The run may be the embedding or the head alone.
//
// A device may run units in several *modes*: with all of their parts, or with some parts, such as
// the experts, on other devices. Each mode is an entry of PlanProblem::devices, which gets a run of
// its own. The entries of a device share its memory and its time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace trine {

// The time of a unit that the device can't run.
inline constexpr int64_t kCannotRun = std::numeric_limits<int64_t>::max();
inline constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// The times of decode passes, or of prefill passes, on one device.
struct PassTimes {
  std::vector<int64_t> unit_ns;  // one per unit; the head's includes reading logits back
  // The time for which each unit keeps the device's bandwidth domain (its memory bus) busy if no
  // other device uses it; at most the unit's time. The times of devices that share a domain and
  // work at the same time add up. Empty: all are 0.
  std::vector<int64_t> domain_ns;
  int64_t run_ns = 0;  // for each run of a segment, whatever is in it
};

// The parts of units that a mode leaves to another device.
struct PlanShare {
  size_t device = 0;               // the device's first entry
  std::string what;                // "experts"
  std::vector<uint64_t> bytes;     // one per unit: what they take of the device's memory
  std::vector<int64_t> decode_ns;  // one per unit: how long they keep the device busy
  std::vector<int64_t> prefill_ns;
};

struct PlanDevice {
  std::string name;
  std::string tier;      // only Strategy::kMemory treats "cpu" in a special way
  std::string left_out;  // why it must not be used ("lost", "not asked for"); "": it may be used
  // The first entry of the same device, which has all parts of its units; nullopt: this is it. A
  // mode has the pool, the domain, the limit and the name of the first entry.
  std::optional<size_t> mode_of;
  std::vector<PlanShare> elsewhere;  // the parts of its units that other devices have
  size_t pool = 0;                   // index into PlanProblem::pools
  size_t domain = 0;                 // devices with the same number share bandwidth
  uint64_t limit_bytes = kNoLimit;
  // Scratch and buffers, if the device is used at all; of a mode, what it takes beyond those.
  uint64_t fixed_bytes = 0;
  std::vector<uint64_t> weight_bytes;  // one per unit
  std::vector<uint64_t> kv_bytes;      // one per unit, at the context asked for; empty: none
  uint64_t tied_bytes = 0;  // the matrix that both ends share; counted once if both are here
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
  // [from][to]: the time to hand the hidden state on, once per pass. The diagonal is not read.
  std::vector<std::vector<int64_t>> decode_transfer_ns;
  std::vector<std::vector<int64_t>> prefill_transfer_ns;

  int units() const { return layers + 2; }
};

// The request whose time is minimised.
struct NominalRequest {
  int prompt_tokens = 512;
  int written_tokens = 128;
};

// Returns INVALID_ARGUMENT if sizes don't match, an index points nowhere, or sums could overflow.
absl::Status CheckProblem(const PlanProblem& problem, const NominalRequest& request);

// Returns the time of a unit, run or transfer in a nominal request, in whole nanoseconds. Sums of
// these times are exact, so they don't depend on the order.
int64_t RequestNs(const PlanProblem& problem, const NominalRequest& request, int64_t decode_ns,
                  int64_t prefill_ns);

// Returns the unit's bytes on the device itself, without the bytes that are counted once per
// device.
uint64_t UnitBytes(const PlanDevice& device, int unit);
// Returns the first entry of an entry's device.
size_t FirstEntry(const PlanProblem& problem, size_t entry);
bool CanRun(const PlanDevice& device, int unit);
int64_t DomainNs(const PassTimes& times, int unit);

// Names the rule by which a placement is best.
enum class Strategy {
  kAuto,      // least predicted time, as PlanOptions::optimize counts it
  kMemory,    // every GPU filled to the same part; the CPU takes the rest
  kBalanced,  // the longest stage as short as possible
};

enum class Optimize {
  kLatency,     // the nominal request, alone
  kThroughput,  // nominal requests per second, with enough of them in flight
};

struct PlanOptions {
  Strategy strategy = Strategy::kAuto;
  Optimize optimize = Optimize::kLatency;
  NominalRequest request;
  bool explain = true;  // fill in bounds, changes and reasons, at the cost of more searches
  // The most steps of the search. After them it stops with the best placement that it has found,
  // and Placement::exact is false.
  uint64_t max_steps = 20000000;
};

}  // namespace trine
