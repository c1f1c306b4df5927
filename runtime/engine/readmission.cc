#include "runtime/engine/readmission.h"

#include <algorithm>

namespace trine {

void Readmission::Lengthen(Wait* wait) const {
  wait->length = wait->length.count() == 0 ? options_.first : 2 * wait->length;
  wait->length = std::min(wait->length, options_.longest);
}

void Readmission::Lost(const std::string& device, Time now) {
  Wait& wait = waits_[device];
  if (!wait.lost && now - wait.since > options_.longest) wait.length = {};
  Lengthen(&wait);
  wait.since = now;
  wait.lost = true;
}

void Readmission::LostForGood(const std::string& device) { waits_.erase(device); }

void Readmission::Failed(const std::string& device, Time now) {
  Wait& wait = waits_[device];
  Lengthen(&wait);
  wait.since = now;
}

void Readmission::Admitted(const std::string& device, Time now) {
  Wait& wait = waits_[device];
  wait.since = now;
  wait.lost = false;
}

std::vector<std::string> Readmission::Due(Time now) const {
  std::vector<std::string> due;
  for (const auto& [device, wait] : waits_) {
    if (wait.lost && now - wait.since >= wait.length) due.push_back(device);
  }
  return due;
}

std::optional<Readmission::Time> Readmission::Next() const {
  std::optional<Time> next;
  for (const auto& [device, wait] : waits_) {
    if (!wait.lost || !options_.automatic) continue;
    const Time at = wait.since + wait.length;
    if (!next || at < *next) next = at;
  }
  return next;
}

}  // namespace trine
