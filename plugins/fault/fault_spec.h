// Parses the text of TRINE_FAULT or trine_engine_options.faults: which faults to inject, on which
// devices and when. docs/faults.md has the grammar of the text, with examples.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trine::fault {

// What happens at a call (docs/faults.md). kSlow only delays the call; kChaos draws one of several
// kinds.
enum class Kind { kOom, kLost, kHang, kTimeout, kGarbage, kSlow, kChaos };

// The kind of call at which a fault strikes. Each device counts its calls of each kind. kLoad
// counts allocations and imports together. kToken counts the runs in which every sequence has one
// token; kRun counts these too. kRandom stands for every call at which the fault's Kind makes
// sense.
enum class Moment {
  kOpen,
  kLoad,
  kAlloc,
  kImport,
  kWrite,
  kRead,
  kCopy,
  kQuery,
  kLayout,
  kPlan,
  kRun,
  kToken,
  kFree,
  kShutdown,
  kRandom
};

// What a kGarbage fault produces. kStatus and kSize replace the answer of a call. The other values
// overwrite the outputs of a run.
enum class Junk { kNan, kInf, kHuge, kTiny, kBits, kStatus, kSize };

// One fault: the calls of `device` at `moment` fail in the way of `kind`.
struct Fault {
  static constexpr uint64_t kAlways = UINT64_MAX;

  std::string text;    // the fault as it was written, for messages
  std::string device;  // "dgpu", "ROCm0", "*"
  Kind kind = Kind::kLost;
  Moment moment = Moment::kRun;
  // The first and the last call of the moment that fails, counted from 1; not for kRandom.
  uint64_t first = 1, last = kAlways;
  double rate = 0;         // kRandom: the probability per call
  uint64_t seed = 1;       // kRandom, Junk::kBits: the start of the random numbers
  Junk junk = Junk::kNan;  // kGarbage: what the fault produces
  // kSlow: the time that is added to the call. kTimeout, kChaos: the time until the driver ends the
  // hang and the device is lost.
  std::chrono::milliseconds time{0};
  bool in_team = false;  // kHang, kTimeout: whether a worker of the host's thread team hangs

  // When a lost or hung device can be opened again.
  enum class Back { kNever, kAfter, kOpen };
  Back back = Back::kNever;
  std::chrono::milliseconds back_after{0};  // Back::kAfter: the least time since the device failed
  uint64_t back_open = 0;  // Back::kOpen: the attempt that succeeds, counted from 1
};

struct FaultSpec {
  std::vector<Fault> faults;

  // Returns the faults in the order of the text; none if the text is empty. Returns
  // INVALID_ARGUMENT, naming the part, if a part can't be read or its options don't go together.
  static absl::StatusOr<FaultSpec> Parse(const std::string& text);
};

// Returns the name of the kind in TRINE_FAULT, such as "lost".
std::string KindName(Kind kind);

// The two names of a device, such as "dgpu0" and "ROCm0".
struct DeviceNames {
  std::string tier_name;
  std::string backend_name;
};

// Returns whether the fault names the device: by its tier name in any case, or by its backend name
// as it is written. "dgpu" means dgpu0, as in a tensor split. "*" and "any" name every device.
bool Concerns(const Fault& fault, const DeviceNames& names);

}  // namespace trine::fault
