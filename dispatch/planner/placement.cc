#include "dispatch/planner/placement.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace trine {
namespace {

int64_t FirstUnit(const PlacedRange& r) { return r.embedding ? 0 : r.begin + 1; }
int64_t EndUnit(const PlacedRange& r) { return r.end + (r.head ? 2 : 1); }

absl::Status CheckRanges(const PlanProblem& problem, const std::vector<PlacedRange>& ranges) {
  int unit = 0;
  for (const PlacedRange& r : ranges) {
    if (r.device >= problem.devices.size()) {
      return absl::InvalidArgumentError("placement: a device that is not there");
    }
    const PlanDevice& device = problem.devices[r.device];
    const bool ends = (!r.embedding || r.begin == 0) && (!r.head || r.end == problem.layers);
    if (!ends || r.end < r.begin || FirstUnit(r) != unit || EndUnit(r) > problem.units()) {
      return absl::InvalidArgumentError(absl::StrCat("placement: layers ", r.begin, " to ", r.end,
                                                     " on ", device.name, " are out of order"));
    }
    for (; unit < EndUnit(r); ++unit) {
      if (CanRun(device, unit)) continue;
      const std::string what = unit == 0                    ? "the embedding"
                               : unit == problem.layers + 1 ? "the output head"
                                                            : absl::StrCat("layer ", unit - 1);
      return absl::InvalidArgumentError(
          absl::StrCat("placement: ", device.name, " can't run ", what));
    }
  }
  if (unit == problem.units()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("placement: it does not cover the model's ", problem.layers, " layers"));
}

PlacementSegment Describe(const PlanDevice& device, const PlacedRange& range) {
  PlacementSegment s;
  s.range = range;
  s.decode_ns = device.decode.run_ns;
  s.prefill_ns = device.prefill.run_ns;
  for (int64_t unit = FirstUnit(range); unit < EndUnit(range); ++unit) {
    s.weight_bytes += device.weight_bytes[unit];
    s.kv_bytes += UnitBytes(device, unit) - device.weight_bytes[unit];
    s.decode_ns += device.decode.unit_ns[unit];
    s.prefill_ns += device.prefill.unit_ns[unit];
  }
  for (const PlanShare& share : device.elsewhere) {
    SegmentShare& part = s.elsewhere.emplace_back();
    part.device = share.device;
    for (int64_t unit = FirstUnit(range); unit < EndUnit(range); ++unit) {
      part.bytes += share.bytes[unit];
      part.decode_ns += share.decode_ns[unit];
      part.prefill_ns += share.prefill_ns[unit];
    }
  }
  return s;
}

// Sums the nominal request's time by device, domain and transfer, which can all be busy at once.
class Clock {
 public:
  Clock(const PlanProblem& problem, const NominalRequest& request)
      : problem_(problem), request_(request) {}

  void Add(const PlacementSegment& s) {
    const PlanDevice& device = problem_.devices[s.range.device];
    int64_t busy = Ns(device.decode.run_ns, device.prefill.run_ns);
    for (int64_t unit = FirstUnit(s.range); unit < EndUnit(s.range); ++unit) {
      busy += Ns(device.decode.unit_ns[unit], device.prefill.unit_ns[unit]);
      domains_[device.domain] += Ns(DomainNs(device.decode, unit), DomainNs(device.prefill, unit));
      for (const PlanShare& share : device.elsewhere) {
        devices_[share.device] += Ns(share.decode_ns[unit], share.prefill_ns[unit]);
        domains_[problem_.devices[share.device].domain] += Ns(share.decode_ns[unit], 0);
      }
    }
    devices_[FirstEntry(problem_, s.range.device)] += busy;
    const int64_t transfer = Ns(s.decode_transfer_ns, s.prefill_transfer_ns);
    longest_transfer_ = std::max(longest_transfer_, transfer);
    total_ += busy + transfer;
  }

  int64_t Total() const { return total_; }
  int64_t LongestStage() const { return Longest(devices_); }
  int64_t Cycle() const { return std::max({LongestStage(), longest_transfer_, Longest(domains_)}); }

 private:
  int64_t Ns(int64_t decode_ns, int64_t prefill_ns) const {
    return RequestNs(problem_, request_, decode_ns, prefill_ns);
  }
  static int64_t Longest(const std::map<size_t, int64_t>& times) {
    int64_t longest = 0;
    for (const auto& [index, ns] : times) longest = std::max(longest, ns);
    return longest;
  }

  const PlanProblem& problem_;
  const NominalRequest& request_;
  std::map<size_t, int64_t> devices_;
  std::map<size_t, int64_t> domains_;
  int64_t longest_transfer_ = 0;
  int64_t total_ = 0;
};

void AddMemory(const PlanProblem& problem, Placement& placement) {
  for (const PlanDevice& device : problem.devices) {
    placement.devices.push_back({device.name, 0, device.limit_bytes});
  }
  for (const PlanPool& pool : problem.pools) {
    placement.pools.push_back({pool.name, 0, pool.capacity_bytes});
  }
  std::vector<bool> embedding(problem.devices.size()), used(problem.devices.size());
  const auto use = [&](size_t device, uint64_t bytes) {
    uint64_t& all = placement.devices[device].used_bytes;
    if (!used[device]) all += problem.devices[device].fixed_bytes;
    used[device] = true;
    all += bytes;
  };
  for (const PlacementSegment& s : placement.segments) {
    const size_t device = FirstEntry(problem, s.range.device);
    const PlanDevice& entry = problem.devices[s.range.device];
    const uint64_t fixed = entry.mode_of.has_value() ? entry.fixed_bytes : 0;
    use(device, s.weight_bytes + s.kv_bytes + fixed);
    for (const SegmentShare& share : s.elsewhere) {
      if (share.bytes > 0) use(share.device, share.bytes);
    }
    if (s.range.embedding) embedding[device] = true;
    if (s.range.head && embedding[device]) {
      placement.devices[device].used_bytes -= problem.devices[device].tied_bytes;
    }
  }
  for (size_t i = 0; i < problem.devices.size(); ++i) {
    placement.pools[problem.devices[i].pool].used_bytes += placement.devices[i].used_bytes;
  }
}

void CheckLimits(const PlanProblem& problem, Placement& placement) {
  std::vector<bool> used(problem.devices.size());
  for (const PlacementSegment& s : placement.segments) {
    used[FirstEntry(problem, s.range.device)] = true;
    if (!problem.devices[s.range.device].mode_of.has_value()) continue;
    for (const SegmentShare& share : s.elsewhere) used[share.device] = true;
  }
  AddMemoryViolations(&placement);
  for (size_t i = 0; i < used.size(); ++i) {
    const PlanDevice& device = problem.devices[i];
    if (used[i] && !device.left_out.empty()) {
      placement.violations.push_back(
          absl::StrCat(device.name, " must not be used: ", device.left_out));
    }
  }
}

}  // namespace

void AddMemoryViolations(Placement* placement) {
  const auto check = [&](const char* what, const MemoryUse& use) {
    if (use.used_bytes <= use.available_bytes) return;
    placement->violations.push_back(absl::StrCat(what, use.name, " needs ",
                                                 BytesText(use.used_bytes), " and has ",
                                                 BytesText(use.available_bytes)));
  };
  for (const MemoryUse& use : placement->devices) check("", use);
  for (const MemoryUse& use : placement->pools) check("pool ", use);
}

absl::StatusOr<Placement> EvaluatePlacement(const PlanProblem& problem,
                                            const NominalRequest& request,
                                            std::vector<PlacedRange> ranges) {
  if (absl::Status s = CheckProblem(problem, request); !s.ok()) return s;
  std::erase_if(ranges, [](const PlacedRange& r) { return r.empty(); });
  SetEnds(&ranges);
  if (absl::Status s = CheckRanges(problem, ranges); !s.ok()) return s;
  Placement placement;
  Clock clock(problem, request);
  for (const PlacedRange& range : ranges) {
    PlacementSegment s = Describe(problem.devices[range.device], range);
    if (!placement.segments.empty()) {
      const size_t from = placement.segments.back().range.device;
      if (from != range.device) {
        s.decode_transfer_ns = problem.decode_transfer_ns[from][range.device];
        s.prefill_transfer_ns = problem.prefill_transfer_ns[from][range.device];
      }
    }
    clock.Add(s);
    placement.decode_ns += s.decode_ns + s.decode_transfer_ns;
    placement.prefill_ns += s.prefill_ns + s.prefill_transfer_ns;
    placement.segments.push_back(std::move(s));
  }
  placement.request_ns = clock.Total();
  placement.cycle_ns = clock.Cycle();
  placement.longest_stage_ns = clock.LongestStage();
  AddMemory(problem, placement);
  CheckLimits(problem, placement);
  return placement;
}

std::string BytesText(uint64_t bytes) {
  if (bytes == kNoLimit) return "no limit";
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string TimeText(int64_t ns) {
  if (ns >= 1000000000) return absl::StrFormat("%.2f s", static_cast<double>(ns) * 1e-9);
  if (ns >= 1000000) return absl::StrFormat("%.1f ms", static_cast<double>(ns) * 1e-6);
  return absl::StrFormat("%.1f us", static_cast<double>(ns) * 1e-3);
}

}  // namespace trine
