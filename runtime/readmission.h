// When a device that was lost is tried again: after a while, and after each failure a longer one.
#ifndef TRINE_RUNTIME_READMISSION_H_
#define TRINE_RUNTIME_READMISSION_H_

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trine {

struct ReadmissionOptions {
  bool automatic = true;  // else only when somebody asks
  std::chrono::milliseconds first = std::chrono::seconds(5);
  std::chrono::milliseconds longest = std::chrono::minutes(5);
};

// Not thread-safe. Whoever calls it brings the time.
class Readmission {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit Readmission(const ReadmissionOptions& options) : options_(options) {}

  // Lost, or lost again: the wait goes on from where it was, unless the device has worked for
  // longer than the longest of them.
  void Lost(const std::string& device, Time now);
  // Lost for a reason that time does not mend: it comes back only when somebody asks.
  void LostForGood(const std::string& device);
  void Failed(const std::string& device, Time now);
  void Admitted(const std::string& device, Time now);

  std::vector<std::string> Due(Time now) const;
  // The earliest time at which one is due.
  std::optional<Time> Next() const;

 private:
  struct Wait {
    std::chrono::milliseconds length{};
    Time since;  // lost, failed or admitted
    bool lost = true;
  };
  void Lengthen(Wait* wait) const;

  const ReadmissionOptions options_;
  std::map<std::string, Wait> waits_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_READMISSION_H_
