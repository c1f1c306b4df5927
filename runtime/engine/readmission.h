// Decides when a lost device is tried again: after a wait that gets longer with each failure.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trine {

struct ReadmissionOptions {
  bool automatic = true;  // false: devices are tried only when Engine::Readmit is called
  std::chrono::milliseconds first = std::chrono::seconds(5);    // the first wait
  std::chrono::milliseconds longest = std::chrono::minutes(5);  // the longest wait
};

// Not thread-safe. Callers pass the time.
class Readmission {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit Readmission(const ReadmissionOptions& options) : options_(options) {}

  // Records that a device was lost. The wait is longer than the device's last wait, unless the
  // device has worked for more than the longest wait in between.
  void Lost(const std::string& device, Time now);
  // Records a loss for a reason that time does not mend. The device never becomes due.
  void LostForGood(const std::string& device);
  // Records that a lost device was tried and does not work yet.
  void Failed(const std::string& device, Time now);
  // Records that a device works again.
  void Admitted(const std::string& device, Time now);

  // Returns the devices whose wait is over.
  std::vector<std::string> Due(Time now) const;
  // Returns the earliest time at which a device is due, or nullopt if none ever is.
  std::optional<Time> Next() const;

 private:
  struct Wait {
    std::chrono::milliseconds length{};
    Time since;  // the time of the last call for this device
    bool lost = true;
  };
  void Lengthen(Wait* wait) const;

  const ReadmissionOptions options_;
  std::map<std::string, Wait> waits_;
};

}  // namespace trine
