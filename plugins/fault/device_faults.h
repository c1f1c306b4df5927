// The faults of one device: counts its calls and says which of them go wrong. Outlives the times
// the device is opened: counts go on when it is opened again. Thread-safe.
#ifndef TRINE_PLUGINS_FAULT_DEVICE_FAULTS_H_
#define TRINE_PLUGINS_FAULT_DEVICE_FAULTS_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "plugins/fault/fault_spec.h"

namespace trine::fault {

// What becomes of one call.
struct Strike {
  std::chrono::milliseconds slow{0};  // first it takes so much longer,
  const Fault* fault = nullptr;       // then this happens, unless it is null
  Kind kind = Kind::kLost;            // chaos has decided by now
};

class DeviceFaults {
 public:
  // Those of `faults` that concern the device.
  DeviceFaults(const DeviceNames& names, const std::vector<Fault>& faults);

  const std::string& name() const { return name_; }
  bool empty() const { return faults_.empty(); }
  // Some run's outputs may have to be overwritten.
  bool spoils_outputs() const { return spoils_outputs_; }

  // One more call. `decode`: a run in which every sequence has one token.
  Strike Count(Moment moment, bool decode = false);

  // From now on it can't be opened, until it is back.
  void SetGone(const Fault& fault);
  // An attempt to open it; the sentence why it fails, or nothing.
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

  std::mutex mutex_;  // guards all below
  std::array<uint64_t, kMoments> counts_{};
  std::vector<uint64_t> draws_;  // by fault
  std::optional<Gone> gone_;
};

}  // namespace trine::fault

#endif  // TRINE_PLUGINS_FAULT_DEVICE_FAULTS_H_
