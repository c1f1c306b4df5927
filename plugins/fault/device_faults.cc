#include "plugins/fault/device_faults.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace trine::fault {
namespace {

// SplitMix64: mixes the bits of a seed or a count.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t HashOf(const std::string& text) {
  uint64_t hash = 0;
  for (const char c : text) hash = Mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

// Returns whether the kind may strike at random here: only where drivers are known to fail so.
bool Eligible(Kind kind, Moment moment) {
  switch (kind) {
    case Kind::kOom:
      return moment == Moment::kAlloc || moment == Moment::kImport || moment == Moment::kPlan;
    case Kind::kLost:
      return moment != Moment::kOpen && moment != Moment::kFree && moment != Moment::kShutdown;
    case Kind::kChaos:
      return moment == Moment::kAlloc || moment == Moment::kImport || moment == Moment::kPlan ||
             moment == Moment::kRun;
    default:
      return moment == Moment::kRun;
  }
}

Kind ChaosAt(Moment moment, uint64_t bits) {
  if (moment != Moment::kRun) return bits % 2 == 0 ? Kind::kOom : Kind::kLost;
  constexpr Kind kKinds[] = {Kind::kOom, Kind::kLost, Kind::kTimeout, Kind::kGarbage};
  return kKinds[bits % 4];
}

}  // namespace

DeviceFaults::DeviceFaults(const DeviceNames& names, const std::vector<Fault>& faults)
    : name_(names.tier_name) {
  for (const Fault& fault : faults) {
    if (Concerns(fault, names)) faults_.push_back(fault);
  }
  draws_.resize(faults_.size(), 0);
  struck_.resize(faults_.size(), false);
  spoils_outputs_ = std::any_of(faults_.begin(), faults_.end(), [](const Fault& f) {
    return f.kind == Kind::kGarbage || f.kind == Kind::kChaos;
  });
}

// Returns whether the fault strikes this call. Sets `bits`, random, for a fault at random moments.
bool DeviceFaults::Due(size_t index, Moment moment, uint64_t* bits) {
  const Fault& fault = faults_[index];
  if (fault.moment != Moment::kRandom) {
    const uint64_t count = counts_[static_cast<size_t>(fault.moment)];
    const bool loads = moment == Moment::kAlloc || moment == Moment::kImport;
    const bool now = fault.moment == moment || (fault.moment == Moment::kLoad && loads);
    return now && count >= fault.first && count <= fault.last;
  }
  if (!Eligible(fault.kind, moment)) return false;
  // Draws by device and by fault, so that two faults of one seed do not strike together.
  const uint64_t drawn = Mix(fault.seed ^ Mix(HashOf(name_) + index) ^ Mix(draws_[index]++));
  *bits = Mix(drawn);
  return static_cast<double>(drawn >> 11) * 0x1p-53 < fault.rate;
}

Strike DeviceFaults::Count(Moment moment, bool decode) {
  Strike strike;
  if (faults_.empty()) return strike;
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counts_[static_cast<size_t>(moment)];
  if (moment == Moment::kAlloc || moment == Moment::kImport) {
    ++counts_[static_cast<size_t>(Moment::kLoad)];
  }
  if (decode) ++counts_[static_cast<size_t>(Moment::kToken)];
  for (size_t i = 0; i < faults_.size(); ++i) {
    uint64_t bits = 0;
    const bool due = Due(i, moment, &bits) || (decode && faults_[i].moment == Moment::kToken &&
                                               Due(i, Moment::kToken, &bits));
    if (!due) continue;
    if (faults_[i].kind == Kind::kSlow) {
      strike.slow += faults_[i].time;
      struck_[i] = true;
    } else if (strike.fault == nullptr) {
      struck_[i] = true;
      strike.fault = &faults_[i];
      strike.kind = faults_[i].kind == Kind::kChaos ? ChaosAt(moment, bits) : faults_[i].kind;
    }
  }
  return strike;
}

std::vector<DeviceFaults::Tally> DeviceFaults::Tallies() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Tally> tallies;
  for (size_t i = 0; i < faults_.size(); ++i) {
    uint64_t calls = counts_[static_cast<size_t>(faults_[i].moment)];
    if (faults_[i].moment == Moment::kRandom) calls = draws_[i];
    tallies.push_back({&faults_[i], struck_[i], calls});
  }
  return tallies;
}

void DeviceFaults::SetGone(const Fault& fault) {
  const std::lock_guard<std::mutex> lock(mutex_);
  gone_ = Gone{&fault, std::chrono::steady_clock::now()};
}

std::optional<std::string> DeviceFaults::TryOpen() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!gone_) return std::nullopt;
  ++gone_->attempts;
  const Fault& fault = *gone_->fault;
  const auto away = std::chrono::steady_clock::now() - gone_->since;
  if ((fault.back == Fault::Back::kAfter && away >= fault.back_after) ||
      (fault.back == Fault::Back::kOpen && gone_->attempts >= fault.back_open)) {
    gone_.reset();
    return std::nullopt;
  }
  return absl::StrCat("injected fault '", fault.text, "': the device is gone");
}

}  // namespace trine::fault
