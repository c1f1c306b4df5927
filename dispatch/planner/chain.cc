#include "dispatch/planner/chain.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace trine::planner {
namespace {

// More than CheckProblem allows for all bytes of a model.
constexpr uint64_t kPlenty = uint64_t{1} << 51;

template <typename F>
Prefix MakePrefix(int units, const F& value) {
  Prefix sums(static_cast<size_t>(units) + 1);
  for (int u = 0; u < units; ++u) sums[u + 1] = sums[u] + value(u);
  return sums;
}

ChainDevice MakeDevice(const PlanProblem& p, const NominalRequest& request, size_t index) {
  const PlanDevice& device = p.devices[index];
  const int units = p.units();
  const auto ns = [&](int64_t decode, int64_t prefill) {
    return RequestNs(p, request, decode, prefill);
  };
  ChainDevice d;
  d.index = index;
  d.time = MakePrefix(units, [&](int u) {
    return CanRun(device, u) ? ns(device.decode.unit_ns[u], device.prefill.unit_ns[u]) : 0;
  });
  d.run_ns = ns(device.decode.run_ns, device.prefill.run_ns);
  d.domain_time = MakePrefix(
      units, [&](int u) { return ns(DomainNs(device.decode, u), DomainNs(device.prefill, u)); });
  d.bytes = MakePrefix(units, [&](int u) { return static_cast<int64_t>(UnitBytes(device, u)); });
  d.fixed_bytes = static_cast<int64_t>(device.fixed_bytes);
  d.limit_bytes = static_cast<int64_t>(
      std::min({device.limit_bytes, p.pools[device.pool].capacity_bytes, kPlenty}));
  d.layers = MakePrefix(units, [&](int u) { return u >= 1 && u <= p.layers ? 1 : 0; });
  d.max_layers = device.max_layers;
  d.max_units = units;
  d.cannot = MakePrefix(units, [&](int u) { return CanRun(device, u) ? 0 : 1; });
  d.tied_bytes = static_cast<int64_t>(device.tied_bytes);
  d.cpu = device.tier == "cpu";
  return d;
}

// Returns the groups of at least two devices that have the same number.
template <typename F>
std::vector<ChainGroup> MakeGroups(const Chain& chain, const F& number) {
  std::map<size_t, DeviceMask> sets;
  for (int d = 0; d < chain.n(); ++d) sets[number(d)] |= One(d);
  std::vector<ChainGroup> groups;
  for (const auto& [key, members] : sets) {
    if ((members & (members - 1)) == 0) continue;
    ChainGroup group;
    group.members = members;
    group.used.resize(chain.devices.size());
    group.fixed.resize(chain.devices.size());
    groups.push_back(group);
  }
  return groups;
}

// Returns the most bytes that the device can use with any units.
int64_t MostBytes(const ChainDevice& d) {
  return std::min(d.limit_bytes, d.fixed_bytes + d.bytes.back());
}

void AddPools(const PlanProblem& p, Chain& chain) {
  const auto pool_of = [&](int d) { return p.devices[chain.devices[d].index].pool; };
  for (ChainGroup& group : MakeGroups(chain, pool_of)) {
    int64_t most = 0;
    for (int d = 0; d < chain.n(); ++d) {
      if ((group.members & One(d)) == 0) continue;
      group.capacity = static_cast<int64_t>(std::min(p.pools[pool_of(d)].capacity_bytes, kPlenty));
      group.used[d] = chain.devices[d].bytes;
      group.fixed[d] = chain.devices[d].fixed_bytes;
      most += MostBytes(chain.devices[d]);
    }
    if (most > group.capacity) chain.pools.push_back(group);
  }
}

void AddDomains(const PlanProblem& p, Chain& chain) {
  const auto domain_of = [&](int d) { return p.devices[chain.devices[d].index].domain; };
  for (ChainGroup& group : MakeGroups(chain, domain_of)) {
    int64_t most = 0;
    for (int d = 0; d < chain.n(); ++d) {
      if ((group.members & One(d)) == 0) continue;
      group.used[d] = chain.devices[d].domain_time;
      most += group.used[d].back();
    }
    if (most > 0) chain.domains.push_back(group);
  }
}

bool AlikeAlone(const ChainDevice& a, const ChainDevice& b) {
  const auto facts = [](const ChainDevice& d) {
    return std::tie(d.run_ns, d.fixed_bytes, d.limit_bytes, d.max_layers, d.tied_bytes, d.cpu,
                    d.time, d.bytes, d.cannot);
  };
  return facts(a) == facts(b);
}

// Returns whether swapping the two devices changes neither cost nor limits of any placement.
bool Alike(const Chain& chain, int a, int b) {
  if (!AlikeAlone(chain.devices[a], chain.devices[b])) return false;
  if (chain.transfer[a][b] != chain.transfer[b][a]) return false;
  for (int d = 0; d < chain.n(); ++d) {
    if (d == a || d == b) continue;
    if (chain.transfer[a][d] != chain.transfer[b][d]) return false;
    if (chain.transfer[d][a] != chain.transfer[d][b]) return false;
  }
  for (const std::vector<ChainGroup>* groups : {&chain.pools, &chain.domains}) {
    for (const ChainGroup& group : *groups) {
      const bool member = (group.members & One(a)) != 0;
      if (member != ((group.members & One(b)) != 0)) return false;
      if (member && group.used[a] != group.used[b]) return false;
    }
  }
  return true;
}

void FindTwins(DeviceMask required, Chain& chain) {
  chain.twin.assign(chain.devices.size(), -1);
  for (int d = 0; d < chain.n(); ++d) {
    for (int earlier = 0; earlier < d; ++earlier) {
      const bool free = (required & (One(d) | One(earlier))) == 0;
      if (free && Alike(chain, earlier, d)) chain.twin[d] = earlier;
    }
  }
}

}  // namespace

bool Chain::Fits(int d, int begin, int end) const {
  const ChainDevice& device = devices[d];
  return device.cannot[end] == device.cannot[begin] && end - begin <= device.max_units &&
         device.layers[end] - device.layers[begin] <= device.max_layers &&
         device.fixed_bytes + device.bytes[end] - device.bytes[begin] <= device.limit_bytes;
}

Reach Chain::MemoryReach() const {
  return MakeReach(*this, [this](int d, int b, int e) { return Fits(d, b, e); });
}

std::vector<int> Chain::WholeWhenTied() const {
  std::vector<int> whole;
  for (int d = 0; d < n(); ++d) {
    const ChainDevice& device = devices[d];
    if (Fits(d, 0, units)) continue;
    const int64_t bytes = device.fixed_bytes + device.bytes.back() - device.tied_bytes;
    const bool runs = device.cannot.back() == 0 && device.max_units >= units &&
                      device.layers.back() <= device.max_layers;
    if (runs && bytes <= device.limit_bytes) whole.push_back(d);
  }
  return whole;
}

std::vector<size_t> SearchedDevices(const PlanProblem& problem, bool split_ends) {
  std::vector<size_t> usable;
  for (size_t i = 0; i < problem.devices.size() && usable.size() < kMostDevices; ++i) {
    if (!problem.devices[i].left_out.empty()) continue;
    const Chain alone = MakeChain(problem, NominalRequest{}, {i}, split_ends);
    const std::vector<int> reach = alone.MemoryReach().front();
    bool holds = !alone.WholeWhenTied().empty();
    for (int b = 0; b < alone.units; ++b) holds = holds || (alone.cut[b] && reach[b] > b);
    if (holds) usable.push_back(i);
  }
  return usable;
}

Chain MakeChain(const PlanProblem& problem, const NominalRequest& request,
                const std::vector<size_t>& devices, bool split_ends, DeviceMask required) {
  Chain chain;
  chain.units = problem.units();
  chain.cut.assign(static_cast<size_t>(chain.units) + 1, true);
  if (!split_ends) {
    // In a model without layers, the two ends stay together.
    chain.cut[1] = false;
    chain.cut[chain.units - 1] = false;
  }
  for (const size_t index : devices) chain.devices.push_back(MakeDevice(problem, request, index));
  for (const size_t from : devices) {
    std::vector<int64_t>& row = chain.transfer.emplace_back();
    for (const size_t to : devices) {
      row.push_back(RequestNs(problem, request, problem.decode_transfer_ns[from][to],
                              problem.prefill_transfer_ns[from][to]));
    }
  }
  AddPools(problem, chain);
  AddDomains(problem, chain);
  FindTwins(required, chain);
  return chain;
}

int64_t UseOf(const ChainGroup& group, const Path& path) {
  int64_t used = 0;
  path.ForEach([&](int d, int begin, int end) {
    if ((group.members & One(d)) != 0) used += group.Use(d, begin, end);
  });
  return used;
}

std::vector<PlacedRange> RangesOf(const Chain& chain, const Path& path) {
  std::vector<PlacedRange> ranges;
  path.ForEach([&](int d, int begin, int end) {
    PlacedRange& range = ranges.emplace_back();
    range.device = chain.devices[d].index;
    range.begin = std::max(begin - 1, 0);
    range.end = std::min(end - 1, chain.units - 2);
    range.embedding = begin == 0;
    range.head = end == chain.units;
  });
  return ranges;
}

}  // namespace trine::planner
