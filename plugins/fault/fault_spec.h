// Reads and checks the text of TRINE_FAULT: which faults to inject, on which devices and when.
// docs/faults.md has its grammar, with examples.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trine::fault {

enum class Kind { kOom, kLost, kHang, kTimeout, kGarbage, kSlow, kChaos };

// The calls of a device, counted by their purpose. kLoad counts allocations and imports together,
// kToken the runs in which every sequence has one token. kRandom is any call at which the kind
// makes sense.
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

// The kinds of garbage: kStatus and kSize replace the answer of a call, the others fill the outputs
// of a run.
enum class Junk { kNan, kInf, kHuge, kTiny, kBits, kStatus, kSize };

// One fault: what happens (kind), to which device, at which of its calls (moment).
struct Fault {
  static constexpr uint64_t kAlways = UINT64_MAX;

  std::string text;    // the fault as it was written, for messages
  std::string device;  // "dgpu", "ROCm0", "*"
  Kind kind = Kind::kLost;
  Moment moment = Moment::kRun;
  uint64_t first = 1, last = kAlways;  // the calls of the moment, counted from 1
  double rate = 0;                     // kRandom: the probability per call
  uint64_t seed = 1;
  Junk junk = Junk::kNan;
  std::chrono::milliseconds time{0};  // kTimeout, kSlow: how long the call takes
  bool in_team = false;               // kHang, kTimeout: hang inside the host's thread team

  // When a lost or hung device can be opened again.
  enum class Back { kNever, kAfter, kOpen };
  Back back = Back::kNever;
  std::chrono::milliseconds back_after{0};
  uint64_t back_open = 0;  // kOpen: the attempt that succeeds, counted from 1
};

struct FaultSpec {
  std::vector<Fault> faults;

  // Returns INVALID_ARGUMENT, naming the part that can't be read. An empty text gives no faults.
  static absl::StatusOr<FaultSpec> Parse(const std::string& text);
};

std::string KindName(Kind kind);  // "lost"

// The two names of a device, such as "dgpu0" and "ROCm0".
struct DeviceNames {
  std::string tier_name;
  std::string backend_name;
};

// Returns whether the fault names the device. As elsewhere, "dgpu" means dgpu0. "*" and "any" name
// every device.
bool Concerns(const Fault& fault, const DeviceNames& names);

}  // namespace trine::fault
