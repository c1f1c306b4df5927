// Counts the calls of one device and decides which of them go wrong. Lives longer than an open
// device: the counts continue when the device is opened again. Thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "plugins/fault/fault_spec.h"

namespace trine::fault {

// The fault that strikes one call, if any.
struct Strike {
  std::chrono::milliseconds slow{0};  // added to the call's time, before the fault
  const Fault* fault = nullptr;       // null: the call succeeds
  Kind kind = Kind::kLost;            // the fault's kind; for kChaos, the kind drawn
};

class DeviceFaults {
 public:
  // Keeps the faults that concern the device.
  DeviceFaults(const DeviceNames& names, const std::vector<Fault>& faults);

  const std::string& name() const { return name_; }
  // Returns whether a fault may overwrite the outputs of runs.
  bool spoils_outputs() const { return spoils_outputs_; }

  // Counts a call and decides about it. `decode` is true for a run in which every sequence has one
  // token.
  Strike Count(Moment moment, bool decode = false);

  // Whether a fault has struck, and how many calls it could have struck.
  struct Tally {
    const Fault* fault;
    bool has_struck;
    uint64_t calls;  // the device's calls at the fault's moment
  };
  std::vector<Tally> Tallies();

  // Makes TryOpen fail until the fault's `back` lets the device be opened again.
  void SetGone(const Fault& fault);
  // Counts an attempt to open the device. Returns why it must fail, or nullopt if it may succeed.
  std::optional<std::string> TryOpen();

 private:
  struct Gone {
    const Fault* fault;
    std::chrono::steady_clock::time_point since;
    uint64_t attempts = 0;
  };
  static constexpr size_t kMoments = static_cast<size_t>(Moment::kRandom) + 1;

  bool Due(size_t index, Moment moment, uint64_t* bits);

  const std::string name_;
  std::vector<Fault> faults_;
  bool spoils_outputs_ = false;

  std::mutex mutex_;  // guards the members below
  std::array<uint64_t, kMoments> counts_{};
  std::vector<uint64_t> draws_;  // the number of draws, by fault
  std::vector<bool> struck_;     // by fault
  std::optional<Gone> gone_;
};

}  // namespace trine::fault
