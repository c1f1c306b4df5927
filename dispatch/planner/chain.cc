#include "dispatch/planner/chain.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

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

// Returns the bytes that a mode takes on its device beside those of its units; 0 for first entries.
int64_t ModeBytes(const PlanProblem& p, size_t entry) {
  const PlanDevice& device = p.devices[entry];
  return device.mode_of.has_value() ? static_cast<int64_t>(device.fixed_bytes) : 0;
}

ChainDevice MakeDevice(const PlanProblem& p, const NominalRequest& request, size_t index) {
  const PlanDevice& device = p.devices[index];
  const PlanDevice& first = p.devices[FirstEntry(p, index)];
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
  d.fixed_bytes = static_cast<int64_t>(first.fixed_bytes) + ModeBytes(p, index);
  d.limit_bytes = static_cast<int64_t>(
      std::min({first.limit_bytes, p.pools[first.pool].capacity_bytes, kPlenty}));
  d.cannot = MakePrefix(units, [&](int u) { return CanRun(device, u) ? 0 : 1; });
  d.tied_bytes = device.mode_of.has_value() ? 0 : static_cast<int64_t>(device.tied_bytes);
  d.cpu = device.tier == "cpu";
  d.mode = device.mode_of.has_value();
  return d;
}

// Returns what a unit of an entry takes of a device, if `own(unit)` is what it takes of its own
// device, and `part(share, unit)` what a share of it takes.
template <typename Own, typename Part>
Prefix TakenOf(const PlanProblem& p, size_t entry, size_t device, const Own& own,
               const Part& part) {
  return MakePrefix(p.units(), [&](int u) {
    int64_t taken = FirstEntry(p, entry) == device ? own(u) : 0;
    for (const PlanShare& share : p.devices[entry].elsewhere) {
      if (share.device == device) taken += part(share, u);
    }
    return taken;
  });
}

// Adds what entry `d` takes to a group. An entry that takes nothing is no member.
void Join(int d, const Prefix& taken, int64_t fixed, ChainGroup& group) {
  const bool is_member = (group.members & One(d)) != 0;
  if (taken.back() == 0 && fixed == 0 && !is_member) return;
  group.members |= One(d);
  Prefix& used = group.used[d];
  if (used.empty()) used.resize(taken.size());
  for (size_t i = 0; i < taken.size(); ++i) used[i] += taken[i];
  group.fixed[d] += fixed;
}

ChainGroup EmptyGroup(const Chain& chain) {
  ChainGroup group;
  group.used.resize(chain.devices.size());
  group.fixed.resize(chain.devices.size());
  return group;
}

// Returns the most that the members can take together.
int64_t MostOf(const ChainGroup& group) {
  int64_t most = 0;
  for (size_t d = 0; d < group.used.size(); ++d) {
    if (!group.used[d].empty()) most += group.fixed[d] + group.used[d].back();
  }
  return most;
}

// Adds a limit of memory, if the members can reach it.
void AddMemory(ChainGroup group, Chain& chain) {
  if (MostOf(group) <= group.capacity) return;
  if (group.capacity >= 0) return chain.pools.push_back(std::move(group));
  for (int d = 0; d < chain.n(); ++d) {  // there is no room for any member
    if ((group.members & One(d)) != 0) chain.devices[d].limit_bytes = -1;
  }
}

Prefix BytesOf(const PlanProblem& p, size_t entry, size_t device) {
  return TakenOf(
      p, entry, device, [&](int u) { return static_cast<int64_t>(UnitBytes(p.devices[entry], u)); },
      [](const PlanShare& share, int u) { return static_cast<int64_t>(share.bytes[u]); });
}

// Returns whether entries of the chain use the device in other ways than with all parts of units.
bool IsShared(const PlanProblem& p, const Chain& chain, size_t device) {
  return std::any_of(chain.devices.begin(), chain.devices.end(), [&](const ChainDevice& d) {
    const PlanDevice& entry = p.devices[d.index];
    if (entry.mode_of == device) return true;
    return std::any_of(entry.elsewhere.begin(), entry.elsewhere.end(),
                       [&](const PlanShare& share) { return share.device == device; });
  });
}

// Adds the memory of each device that several entries use. Its fixed bytes are set aside.
void AddMemories(const PlanProblem& p, Chain& chain) {
  for (size_t device = 0; device < p.devices.size(); ++device) {
    const PlanDevice& owner = p.devices[device];
    if (owner.mode_of.has_value() || !IsShared(p, chain, device)) continue;
    ChainGroup group = EmptyGroup(chain);
    for (int d = 0; d < chain.n(); ++d) {
      const size_t entry = chain.devices[d].index;
      const bool is_own = FirstEntry(p, entry) == device;
      Join(d, BytesOf(p, entry, device), is_own ? ModeBytes(p, entry) : 0, group);
    }
    group.capacity = static_cast<int64_t>(std::min(owner.limit_bytes, kPlenty)) -
                     static_cast<int64_t>(owner.fixed_bytes);
    AddMemory(std::move(group), chain);
  }
}

// Adds the pools that several entries use, or one entry in two ways.
void AddPools(const PlanProblem& p, Chain& chain) {
  for (size_t pool = 0; pool < p.pools.size(); ++pool) {
    ChainGroup group = EmptyGroup(chain);
    group.capacity = static_cast<int64_t>(std::min(p.pools[pool].capacity_bytes, kPlenty));
    int uses = 0;
    for (size_t device = 0; device < p.devices.size(); ++device) {
      const PlanDevice& owner = p.devices[device];
      if (owner.mode_of.has_value() || owner.pool != pool) continue;
      const auto fixed = static_cast<int64_t>(owner.fixed_bytes);
      const bool shared = owner.left_out.empty() && IsShared(p, chain, device);
      if (shared) group.capacity -= fixed;
      for (int d = 0; d < chain.n(); ++d) {
        const size_t entry = chain.devices[d].index;
        const Prefix taken = BytesOf(p, entry, device);
        uses += entry == device || taken.back() > 0;
        const bool is_own = FirstEntry(p, entry) == device;
        Join(d, taken,
             entry == device && !shared ? fixed
             : is_own                   ? ModeBytes(p, entry)
                                        : 0,
             group);
      }
    }
    if (uses > 1) AddMemory(std::move(group), chain);
  }
}

// Adds the bandwidth domains that several entries draw on. Parts elsewhere draw on it in decode
// passes, which read all of them for few tokens.
void AddDomains(const PlanProblem& p, const NominalRequest& request, Chain& chain) {
  std::map<size_t, ChainGroup> groups;
  const auto group_of = [&](size_t device) -> ChainGroup& {
    return groups.try_emplace(p.devices[device].domain, EmptyGroup(chain)).first->second;
  };
  for (int d = 0; d < chain.n(); ++d) {
    const PlanDevice& entry = p.devices[chain.devices[d].index];
    Join(d, chain.devices[d].domain_time, 0, group_of(chain.devices[d].index));
    for (const PlanShare& share : entry.elsewhere) {
      const auto part = [&](int u) { return RequestNs(p, request, share.decode_ns[u], 0); };
      Join(d, MakePrefix(p.units(), part), 0, group_of(share.device));
    }
  }
  for (auto& [domain, group] : groups) {
    if ((group.members & (group.members - 1)) != 0) chain.domains.push_back(std::move(group));
  }
}

// Adds the time of each device that several entries use.
void AddWorkers(const PlanProblem& p, const NominalRequest& request, Chain& chain) {
  for (size_t device = 0; device < p.devices.size(); ++device) {
    if (p.devices[device].mode_of.has_value() || !IsShared(p, chain, device)) continue;
    ChainGroup group = EmptyGroup(chain);
    for (int d = 0; d < chain.n(); ++d) {
      const ChainDevice& entry = chain.devices[d];
      const auto own = [&](int u) { return entry.time[u + 1] - entry.time[u]; };
      const auto part = [&](const PlanShare& share, int u) {
        return RequestNs(p, request, share.decode_ns[u], share.prefill_ns[u]);
      };
      const bool is_own = FirstEntry(p, entry.index) == device;
      Join(d, TakenOf(p, entry.index, device, own, part), is_own ? entry.run_ns : 0, group);
    }
    chain.workers.push_back(std::move(group));
  }
}

// Returns whether neither the entry's device nor another one that a mode needs is left out. Parts
// of a first entry are where the user put them.
bool MayUse(const PlanProblem& p, size_t entry) {
  const PlanDevice& device = p.devices[entry];
  if (!device.mode_of.has_value()) return device.left_out.empty();
  return device.left_out.empty() && p.devices[FirstEntry(p, entry)].left_out.empty() &&
         std::all_of(device.elsewhere.begin(), device.elsewhere.end(), [&](const PlanShare& share) {
           return p.devices[share.device].left_out.empty();
         });
}

bool AlikeAlone(const ChainDevice& a, const ChainDevice& b) {
  const auto facts = [](const ChainDevice& d) {
    return std::tie(d.run_ns, d.fixed_bytes, d.limit_bytes, d.tied_bytes, d.cpu, d.time, d.bytes,
                    d.cannot);
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
  for (const std::vector<ChainGroup>* groups : {&chain.pools, &chain.domains, &chain.workers}) {
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

Reach Chain::MemoryReach() const {
  return MakeReach(*this, [this](int d, int begin, int end) {
    const ChainDevice& device = devices[d];
    return device.cannot[end] == device.cannot[begin] &&
           device.fixed_bytes + device.bytes[end] - device.bytes[begin] <= device.limit_bytes;
  });
}

std::vector<Path> Chain::WholeWhenTied() const {
  std::vector<Path> whole;
  for (int d = 0; d < n(); ++d) {
    const ChainDevice& device = devices[d];
    const auto fits = [&](int64_t tied) {
      const int64_t bytes = device.fixed_bytes + device.bytes.back() - tied;
      return bytes <= device.limit_bytes &&
             std::all_of(pools.begin(), pools.end(), [&](const ChainGroup& group) {
               return (group.members & One(d)) == 0 ||
                      group.Use(d, 0, units) - tied <= group.capacity;
             });
    };
    if (device.cannot.back() == 0 && !fits(0) && fits(device.tied_bytes)) {
      whole.push_back(Path{}.With(d, units));
    }
  }
  return whole;
}

std::vector<size_t> SearchedDevices(const PlanProblem& problem, Strategy strategy) {
  std::vector<size_t> usable;
  for (size_t i = 0; i < problem.devices.size() && usable.size() < kMostDevices; ++i) {
    const PlanDevice& device = problem.devices[i];
    const bool wanted = !device.mode_of.has_value() || strategy != Strategy::kMemory;
    if (!wanted || !MayUse(problem, i)) continue;
    const Chain alone = MakeChain(problem, NominalRequest{}, {i});
    const std::vector<int> reach = alone.MemoryReach().front();
    bool holds = !alone.WholeWhenTied().empty();
    for (int b = 0; b < alone.units; ++b) holds = holds || reach[b] > b;
    if (holds) usable.push_back(i);
  }
  return usable;
}

Chain MakeChain(const PlanProblem& problem, const NominalRequest& request,
                const std::vector<size_t>& devices, DeviceMask required) {
  Chain chain;
  chain.units = problem.units();
  for (const size_t index : devices) chain.devices.push_back(MakeDevice(problem, request, index));
  for (const size_t from : devices) {
    std::vector<int64_t>& row = chain.transfer.emplace_back();
    for (const size_t to : devices) {
      row.push_back(RequestNs(problem, request, problem.decode_transfer_ns[from][to],
                              problem.prefill_transfer_ns[from][to]));
    }
  }
  AddMemories(problem, chain);
  AddPools(problem, chain);
  AddDomains(problem, request, chain);
  AddWorkers(problem, request, chain);
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
