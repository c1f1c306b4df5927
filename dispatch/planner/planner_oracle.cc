#include "dispatch/planner/planner_oracle.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dispatch/planner/chain.h"
#include "dispatch/planner/strategy.h"

namespace trine {
namespace {

// Sums the times of one decode pass for each written token, and of the prefill passes of the
// prompt, the last of which may be a part of a pass. Rounds to a nanosecond.
int64_t InARequest(const PlanProblem& problem, const NominalRequest& request, int64_t decode,
                   int64_t prefill) {
  const long double passes =
      static_cast<long double>(request.prompt_tokens) / problem.prefill_tokens;
  return static_cast<int64_t>(std::floor(static_cast<long double>(decode) * request.written_tokens +
                                         static_cast<long double>(prefill) * passes + 0.5L));
}

// Returns the bytes of all units of an entry on a device.
uint64_t AllBytes(const PlanProblem& p, size_t entry, size_t device) {
  const PlanDevice& d = p.devices[entry];
  uint64_t all = 0;
  for (int u = 0; u < p.units(); ++u) {
    if (FirstEntry(p, entry) == device) all += UnitBytes(d, u);
    for (const PlanShare& share : d.elsewhere) {
      if (share.device == device) all += share.bytes[u];
    }
  }
  return all;
}

// Returns the devices that have modes, or parts of the units of modes.
std::set<size_t> SharedDevices(const PlanProblem& p, Strategy strategy) {
  std::set<size_t> shared;
  for (const size_t entry : planner::SearchedDevices(p, strategy)) {
    const PlanDevice& d = p.devices[entry];
    if (d.mode_of.has_value()) shared.insert(*d.mode_of);
    for (const PlanShare& share : d.elsewhere) shared.insert(share.device);
  }
  return shared;
}

// Returns whether the bytes on all devices and in all pools keep to the limits. The fixed bytes of
// `shared` devices are always set aside.
bool Fits(const PlanProblem& p, const std::set<size_t>& shared, const std::vector<size_t>& order,
          const std::map<size_t, uint64_t>& used) {
  std::vector<uint64_t> pools(p.pools.size());
  std::vector<bool> in_use(p.pools.size());
  for (size_t device = 0; device < p.devices.size(); ++device) {
    const PlanDevice& d = p.devices[device];
    if (d.mode_of.has_value()) continue;
    bool has_run = false, takes = false;
    for (const size_t entry : order) {
      has_run = has_run || FirstEntry(p, entry) == device;
      takes = takes || AllBytes(p, entry, device) > 0;
    }
    const bool set_aside = d.left_out.empty() && shared.count(device) > 0;
    const uint64_t bytes = used.count(device) > 0 ? used.at(device) : 0;
    if ((has_run || takes) && bytes + d.fixed_bytes > d.limit_bytes) return false;
    pools[d.pool] += bytes + (has_run || set_aside ? d.fixed_bytes : 0);
    in_use[d.pool] = in_use[d.pool] || has_run || takes;
  }
  for (size_t i = 0; i < pools.size(); ++i) {
    if (in_use[i] && pools[i] > p.pools[i].capacity_bytes) return false;
  }
  return true;
}

// Returns no value if the placement breaks a limit.
std::optional<Rated> RateOne(const PlanProblem& p, const NominalRequest& request,
                             const std::set<size_t>& shared, const std::vector<size_t>& order,
                             const std::vector<int>& ends) {
  Rated rated{order, ends, 0, 0, 0, {}};
  std::map<size_t, int64_t> domains, workers;
  std::map<size_t, uint64_t> used;
  int begin = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const PlanDevice& d = p.devices[order[i]];
    const size_t device = FirstEntry(p, order[i]);
    if (!d.left_out.empty() || !p.devices[device].left_out.empty()) return {};
    int64_t busy = InARequest(p, request, d.decode.run_ns, d.prefill.run_ns);
    uint64_t bytes = 0;
    for (int u = begin; u < ends[i]; ++u) {
      if (d.decode.unit_ns[u] == kCannotRun || d.prefill.unit_ns[u] == kCannotRun) return {};
      busy += InARequest(p, request, d.decode.unit_ns[u], d.prefill.unit_ns[u]);
      const auto bandwidth = [u](const PassTimes& t) {  // at most the unit's time
        return t.domain_ns.empty() ? 0 : std::min(t.domain_ns[u], t.unit_ns[u]);
      };
      domains[d.domain] += InARequest(p, request, bandwidth(d.decode), bandwidth(d.prefill));
      bytes += d.weight_bytes[u] + (d.kv_bytes.empty() ? 0 : d.kv_bytes[u]);
      for (const PlanShare& share : d.elsewhere) {
        if (!p.devices[share.device].left_out.empty()) return {};
        used[share.device] += share.bytes[u];
        workers[share.device] += InARequest(p, request, share.decode_ns[u], share.prefill_ns[u]);
        domains[p.devices[share.device].domain] += InARequest(p, request, share.decode_ns[u], 0);
      }
    }
    if (order.size() == 1) bytes -= d.tied_bytes;
    if (d.mode_of.has_value()) bytes += d.fixed_bytes;
    used[device] += bytes;
    rated.used[order[i]] = bytes + p.devices[device].fixed_bytes;
    workers[device] += busy;
    rated.request_ns += busy;
    if (i > 0) {
      const int64_t way = InARequest(p, request, p.decode_transfer_ns[order[i - 1]][order[i]],
                                     p.prefill_transfer_ns[order[i - 1]][order[i]]);
      rated.request_ns += way;
      rated.cycle_ns = std::max(rated.cycle_ns, way);
    }
    begin = ends[i];
  }
  if (!Fits(p, shared, order, used)) return {};
  for (const auto& [device, ns] : workers) {
    rated.longest_stage_ns = std::max(rated.longest_stage_ns, ns);
  }
  rated.cycle_ns = std::max(rated.cycle_ns, rated.longest_stage_ns);
  for (const auto& [domain, ns] : domains) rated.cycle_ns = std::max(rated.cycle_ns, ns);
  return rated;
}

}  // namespace

Everything::Everything(const PlanProblem& problem, const PlanOptions& options)
    : problem_(problem), options_(options), shared_(SharedDevices(problem, options.strategy)) {
  Grow({}, {}, 0);
}

void Everything::Grow(const std::vector<size_t>& order, const std::vector<int>& ends, int begin) {
  if (begin == problem_.units()) return Rate(order, ends);
  for (size_t d = 0; d < problem_.devices.size(); ++d) {
    if (std::count(order.begin(), order.end(), d) > 0) continue;
    for (int end = begin + 1; end <= problem_.units(); ++end) {
      std::vector<size_t> longer_order = order;
      std::vector<int> longer_ends = ends;
      longer_order.push_back(d);
      longer_ends.push_back(end);
      Grow(longer_order, longer_ends, end);
    }
  }
}

void Everything::Rate(const std::vector<size_t>& order, const std::vector<int>& ends) {
  auto rated = RateOne(problem_, options_.request, shared_, order, ends);
  if (rated.has_value()) all_.push_back(*std::move(rated));
}

std::vector<int64_t> Latency(const PlanProblem&, const Rated& r) { return {r.request_ns}; }
std::vector<int64_t> Throughput(const PlanProblem&, const Rated& r) {
  return {r.cycle_ns, r.request_ns};
}
std::vector<int64_t> Balanced(const PlanProblem&, const Rated& r) {
  return {r.longest_stage_ns, r.request_ns};
}
std::vector<int64_t> Memory(const PlanProblem& problem, const Rated& r) {
  int64_t cpu_units = 0;
  int64_t fill = 0;
  int begin = 0;
  for (size_t i = 0; i < r.order.size(); ++i) {
    const PlanDevice& device = problem.devices[r.order[i]];
    if (device.tier == "cpu") {
      cpu_units += r.ends[i] - begin;
    } else {
      const uint64_t tied = r.order.size() == 1 ? device.tied_bytes : 0;
      const uint64_t usable = std::max<uint64_t>(
          std::min(
              {device.limit_bytes, problem.pools[device.pool].capacity_bytes, uint64_t{1} << 51}),
          1);
      // A plan on one device is filled as if nothing were tied.
      const uint64_t used = r.used.at(r.order[i]) + tied;
      fill = std::max(fill, static_cast<int64_t>((used * 1024 + usable - 1) / usable));
    }
    begin = r.ends[i];
  }
  return {cpu_units, fill, r.request_ns};
}

const Rated* BestOf(const PlanProblem& problem, const std::vector<Rated>& all,
                    const Objective& objective) {
  const auto key = [&](const Rated& r) {
    return std::tuple(objective(problem, r), r.order.size(), r.order, r.ends);
  };
  const Rated* best = nullptr;
  for (const Rated& r : all) {
    if (best == nullptr || key(r) < key(*best)) best = &r;
  }
  return best;
}

std::string RatedText(const PlanProblem& problem, const Rated& r) {
  std::string text =
      absl::StrCat(r.request_ns, " ns, cycle ", r.cycle_ns, ", stage ", r.longest_stage_ns, ":");
  for (size_t i = 0; i < r.order.size(); ++i) {
    absl::StrAppend(&text, " ", problem.devices[r.order[i]].name, " to ", r.ends[i]);
  }
  return text;
}

}  // namespace trine
