// What is to go wrong, on which device and when: the text of TRINE_FAULT, read and checked. Its
// grammar, with examples, is in docs/faults.md.
#ifndef TRINE_PLUGINS_FAULT_FAULT_SPEC_H_
#define TRINE_PLUGINS_FAULT_FAULT_SPEC_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trine::fault {

enum class Kind { kOom, kLost, kHang, kTimeout, kGarbage, kSlow, kChaos };

// Calls of a device are counted by what they do. kLoad is the first allocation or import, kToken a
// run in which every sequence has one token; kRandom is any call at which the kind makes sense.
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

// What garbage is put where: values into a run's outputs, or another answer to the call itself.
enum class Junk { kNan, kInf, kHuge, kTiny, kBits, kStatus, kSize };

struct Fault {
  static constexpr uint64_t kAlways = UINT64_MAX;

  std::string text;    // as it was written, for messages
  std::string device;  // "dgpu", "ROCm0", "*"
  Kind kind = Kind::kLost;
  Moment moment = Moment::kRun;
  uint64_t first = 1, last = kAlways;  // which calls of the moment
  double rate = 0;                     // of kRandom
  uint64_t seed = 1;
  Junk junk = Junk::kNan;
  std::chrono::milliseconds time{0};  // of kTimeout and kSlow
  bool in_team = false;               // kHang, kTimeout: inside the host's thread team

  // When a device that was lost, or hung, can be opened again.
  enum class Back { kNever, kAfter, kOpen };
  Back back = Back::kNever;
  std::chrono::milliseconds back_after{0};
  uint64_t back_open = 0;  // the how-manieth attempt succeeds
};

struct FaultSpec {
  std::vector<Fault> faults;

  // INVALID_ARGUMENT names the part that can't be read. "" is no fault.
  static absl::StatusOr<FaultSpec> Parse(const std::string& text);
};

std::string KindName(Kind kind);  // "lost"

// What a device is called: "dgpu0" and "ROCm0".
struct DeviceNames {
  std::string tier_name;
  std::string backend_name;
};

// As names are understood elsewhere: "dgpu" is dgpu0. "*" and "any" are every device.
bool Concerns(const Fault& fault, const DeviceNames& names);

}  // namespace trine::fault

#endif  // TRINE_PLUGINS_FAULT_FAULT_SPEC_H_
