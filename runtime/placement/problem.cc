#include "runtime/placement/problem.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dispatch/exec/segment.h"
#include "plugins/handles.h"
#include "runtime/model/run/decode_bytes.h"
#include "runtime/model/run/route_plan.h"
#include "runtime/placement/describe_units.h"
#include "runtime/placement/known_costs.h"

namespace trine {
namespace {

// Returns whether the numbers are far below where sums would overflow.
bool MakesSense(const PlanDevice& device) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 50;
  constexpr int64_t kMostNs = int64_t{1} << 45;
  const auto bytes = [](uint64_t n) { return n < kMostBytes; };
  const auto time = [](int64_t ns) { return ns == kCannotRun || (ns >= 0 && ns < kMostNs); };
  const auto times = [&](const PassTimes& pass) {
    return time(pass.run_ns) && std::all_of(pass.unit_ns.begin(), pass.unit_ns.end(), time);
  };
  return bytes(device.fixed_bytes) &&
         std::all_of(device.weight_bytes.begin(), device.weight_bytes.end(), bytes) &&
         std::all_of(device.kv_bytes.begin(), device.kv_bytes.end(), bytes) &&
         times(device.decode) && times(device.prefill);
}

// Makes a device unable to run anything. It is listed only to show the reason why it is left out.
void RunNothing(size_t units, PlanDevice* device) {
  device->fixed_bytes = device->tied_bytes = 0;
  device->weight_bytes.assign(units, 0);
  device->kv_bytes.clear();
  device->elsewhere.clear();
  for (PassTimes* times : {&device->decode, &device->prefill}) {
    times->unit_ns.assign(units, kCannotRun);
    times->domain_ns.assign(units, 0);
    times->run_ns = 0;
  }
}

size_t IndexOf(const std::string& name, std::vector<std::string>* names) {
  const auto found = std::find(names->begin(), names->end(), name);
  if (found != names->end()) return static_cast<size_t>(found - names->begin());
  names->push_back(name);
  return names->size() - 1;
}

// A candidate and its known costs.
struct Found {
  const InventoryDevice* device = nullptr;
  KnownCosts known;
  std::shared_ptr<Device> opened;  // null: it is left out
};

absl::StatusOr<Found> Find(const CandidateDevice& candidate, const Calibration& calibration,
                           double bytes_per_token, DeviceSet* devices) {
  const Inventory& inventory = devices->inventory();
  const auto found =
      std::find_if(inventory.devices.begin(), inventory.devices.end(),
                   [&](const InventoryDevice& d) { return d.tier_name == candidate.name; });
  if (found == inventory.devices.end()) {
    return absl::NotFoundError(absl::StrCat("there is no device ", candidate.name));
  }
  const uint32_t threads = devices->host().table()->worker_count;
  return Found{&*found,
               WithReuse(FindCosts(calibration, inventory, *found, threads), bytes_per_token),
               nullptr};
}

struct Described {
  PlanDevice device;
  std::string helper;
};

// Describes a device on a watched thread, since the device may hang. So may a helper, which is
// asked for the ops that it has. The error names the device that failed.
absl::StatusOr<Described> DescribeWatched(std::shared_ptr<const DescribeInputs> inputs,
                                          const Found& found, std::vector<Helper> helpers,
                                          PlanDevice begun, DeviceSet* devices) {
  const auto wanted = std::make_shared<std::atomic<bool>>(true);
  std::vector<NamedDevice> asked = {{found.opened, found.device->tier_name}};
  for (const Helper& helper : helpers) asked.push_back({helper.device, helper.name});
  const auto describe = [inputs = std::move(inputs), wanted, device = found.opened,
                         known = found.known, helpers = std::move(helpers),
                         begun = std::move(begun)]() -> absl::StatusOr<Described> {
    Described described{begun, ""};
    const absl::Status s = DescribeDevice(*inputs, *device, known, helpers, *wanted,
                                          &described.device, &described.helper);
    if (!s.ok()) return s;
    return described;
  };
  const bool watched = std::any_of(
      asked.begin(), asked.end(), [&](const NamedDevice& d) { return devices->IsWatched(d.name); });
  if (!watched) return describe();
  Watched<absl::StatusOr<Described>> work(describe);
  auto described = devices->WaitFor(&work, asked);
  *wanted = false;
  return described;
}

struct DescribedParts {
  PlanDevice device;
  PartsNeeds needs;
};

// Returns the slots as a layer's device has them: one that reads the file's pages has none. The
// memory of slots counts all the same, because the device gets slots if importing should fail.
std::map<int64_t, PlannedSlots> SlotsOn(const Found& home, std::map<int64_t, PlannedSlots> slots,
                                        bool file_mapped) {
  const bool in_place =
      file_mapped && home.opened != nullptr && MayImport(home.opened->info(), /*read_only=*/true);
  for (auto& [layer, planned] : slots) {
    if (!in_place) break;
    planned.in_place = true;
    planned.share = static_cast<double>(planned.slots) / static_cast<double>(planned.experts);
  }
  return slots;
}

// Describes a device with parts elsewhere as DescribeWatched describes one without. `begun`: the
// device's first entry. `all`: the devices of the problem, in the order of its first entries.
absl::StatusOr<DescribedParts> DescribePartsWatched(std::shared_ptr<const DescribeInputs> inputs,
                                                    size_t home, const std::vector<Found>& all,
                                                    const PartPlaces& parts, PlanDevice begun,
                                                    DeviceSet* devices) {
  TensorPlaces places;
  std::map<std::string, KnownCosts> costs;
  std::map<std::string, NamedDevice> opened;
  std::vector<NamedDevice> asked;
  std::set<std::string> needed = {all[home].device->tier_name};
  for (const auto& [tensor, device] : parts.tensors) needed.insert(device);
  for (const DeviceShare& share : parts.rows) needed.insert(share.device);
  for (const Found& one : all) {
    const std::string& name = one.device->tier_name;
    if (needed.count(name) == 0) continue;
    // A device that gets no layers may still have parts, where the user put them.
    auto device = devices->Open(name);
    if (!device.ok()) return OnDevice(name, device.status());
    asked.push_back({*std::move(device), name});
    opened.emplace(name, asked.back());
    costs.emplace(name, one.known);
  }
  for (const auto& [tensor, device] : parts.tensors) {
    if (opened.count(device) != 0) places.tensors.emplace(tensor, opened.at(device));
  }
  for (const DeviceShare& share : parts.rows) {
    if (opened.count(share.device) != 0) {
      places.rows.push_back({opened.at(share.device), share.share});
    }
  }
  std::map<int64_t, double> in_slots;
  for (const auto& [layer, planned] :
       SlotsOn(all[home], parts.slots, inputs->options.file_mapped)) {
    places.slots[layer] = planned.slots;
    in_slots[layer] = planned.share;
  }
  const auto wanted = std::make_shared<std::atomic<bool>>(true);
  const NamedDevice main = opened.at(all[home].device->tier_name);
  std::map<std::string, size_t> indices;
  for (size_t i = 0; i < all.size(); ++i) indices[all[i].device->tier_name] = i;
  const auto describe = [inputs = std::move(inputs), wanted, main, places = std::move(places),
                         in_slots = std::move(in_slots), costs = std::move(costs),
                         indices = std::move(indices),
                         begun = std::move(begun)]() -> absl::StatusOr<DescribedParts> {
    DescribedParts described{begun, {}};
    std::map<std::string, PlanShare> shares;
    const absl::Status s = DescribeParts(*inputs, main, places, in_slots, costs, *wanted,
                                         &described.device, &shares, &described.needs);
    if (!s.ok()) return s;
    // A route with fetched weights has scratch of its own.
    described.device.fixed_bytes =
        described.needs.bytes + (described.needs.fetches ? begun.fixed_bytes + kStreamBytes : 0);
    described.device.elsewhere.clear();
    for (auto& [name, share] : shares) {
      share.device = indices.at(name);
      described.device.elsewhere.push_back(std::move(share));
    }
    return described;
  };
  if (std::none_of(asked.begin(), asked.end(),
                   [&](const NamedDevice& d) { return devices->IsWatched(d.name); })) {
    return describe();
  }
  Watched<absl::StatusOr<DescribedParts>> work(describe);
  auto described = devices->WaitFor(&work, asked);
  *wanted = false;
  return described;
}

// Returns the devices that may help a device that is given layers.
std::vector<Helper> HelpersOf(const Found& home, const std::vector<Found>& all,
                              const ProblemOptions& options) {
  std::vector<Helper> helpers;
  for (const Found& other : all) {
    if (!options.dispatch || other.opened == nullptr || other.opened == home.opened) continue;
    if (options.helpers && options.helpers->count(other.device->tier_name) == 0) continue;
    helpers.push_back({other.device->tier_name, other.known, other.opened});
  }
  return helpers;
}

// Converts bytes to the time that they keep the domain busy.
void SpreadDomains(const std::vector<Found>& all, PlanProblem* plan) {
  std::vector<double> bandwidth(plan->devices.size(), 0);  // by domain
  for (size_t i = 0; i < all.size(); ++i) {
    double& most = bandwidth[plan->devices[i].domain];
    most = std::max(most, all[i].known.costs.bytes_per_second);
  }
  for (PlanDevice& device : plan->devices) {
    const double rate = bandwidth[device.domain];
    for (PassTimes* times : {&device.decode, &device.prefill}) {
      for (size_t u = 0; u < times->domain_ns.size(); ++u) {
        const double ns = rate > 0 ? static_cast<double>(times->domain_ns[u]) / rate * 1e9 : 0;
        const int64_t most = times->unit_ns[u] == kCannotRun ? 0 : times->unit_ns[u];
        times->domain_ns[u] = std::min(Nanoseconds(ns), most);
      }
    }
  }
}

void AddTransfers(const std::vector<Found>& all, double row_bytes, double prefill_tokens,
                  PlanProblem* plan) {
  for (size_t i = 0; i < plan->devices.size(); ++i) {
    plan->decode_transfer_ns.emplace_back();
    plan->prefill_transfer_ns.emplace_back();
    for (size_t j = 0; j < plan->devices.size(); ++j) {
      const size_t from = FirstEntry(*plan, i), to = FirstEntry(*plan, j);
      // Rounds both parts separately: the search is shorter if the times of transfers are exact
      // sums. Entries of one device are one segment when the model runs.
      const auto move = [&](double bytes) {
        if (from == to) return int64_t{0};
        return Nanoseconds(all[from].known.costs.out.Of(bytes)) +
               Nanoseconds(all[to].known.costs.in.Of(bytes));
      };
      plan->decode_transfer_ns.back().push_back(move(row_bytes));
      plan->prefill_transfer_ns.back().push_back(move(row_bytes * prefill_tokens));
    }
  }
}

void AddPools(const Inventory& inventory, const std::vector<std::string>& names,
              PlanProblem* plan) {
  for (const std::string& name : names) {
    const auto pool = std::find_if(inventory.pools.begin(), inventory.pools.end(),
                                   [&](const MemoryPool& p) { return p.name == name; });
    const bool known = pool != inventory.pools.end() && pool->available_bytes != 0;
    plan->pools.push_back({name, known ? pool->available_bytes : kNoLimit});
  }
}

// Says in a word what the user has placed on the device.
std::string WhatIsFixed(const PartPlaces& fixed, const std::string& device) {
  if (!fixed.rows.empty()) return "rows";
  const bool experts =
      std::all_of(fixed.tensors.begin(), fixed.tensors.end(), [&](const auto& one) {
        return one.second != device || one.first.find("_exps.") != std::string::npos;
      });
  return experts ? "experts" : "weights";
}

// Applies the user's places of parts to all devices, and adds the modes. Leaves out a device whose
// parts can't be described, and a mode.
absl::Status AddParts(const std::shared_ptr<const DescribeInputs>& inputs,
                      const std::vector<Found>& all, DeviceSet* devices,
                      PlacementProblem* problem) {
  PlanProblem& plan = problem->plan;
  const ProblemOptions& options = inputs->options;
  const auto describe = [&](size_t home,
                            const PartPlaces& parts) -> absl::StatusOr<DescribedParts> {
    auto described = DescribePartsWatched(inputs, home, all, parts, plan.devices[home], devices);
    if (IsGone(described.status())) {
      problem->failed.push_back({FaultyDevice(described.status()), described.status()});
      if (absl::IsDeadlineExceeded(described.status())) devices->host().ReplaceTeam();
      devices->Forget(FaultyDevice(described.status()));
    } else if (described.ok() && !MakesSense(described->device)) {
      return absl::InternalError("its sizes or times are beyond reason");
    }
    return described;
  };
  for (size_t i = 0; i < all.size() && !options.fixed.empty(); ++i) {
    if (all[i].opened == nullptr || !plan.devices[i].left_out.empty()) continue;
    auto described = describe(i, options.fixed);
    if (described.ok()) {
      PlanDevice& device = described->device;
      for (PlanShare& share : device.elsewhere) {
        share.what = WhatIsFixed(options.fixed, plan.devices[share.device].name);
      }
      device.fixed_bytes += plan.devices[i].fixed_bytes;
      problem->fetches[i] = described->needs.fetches;
      if (!device.elsewhere.empty()) {
        problem->slots[i] = SlotsOn(all[i], options.fixed.slots, options.file_mapped);
      }
      plan.devices[i] = std::move(device);
    } else {
      plan.devices[i].left_out = std::string(described.status().message());
      RunNothing(static_cast<size_t>(plan.units()), &plan.devices[i]);
    }
    if (!problem->failed.empty()) return absl::OkStatus();  // the caller begins again
  }
  for (const ModeOption& mode : options.modes) {
    const auto named = [&](const Found& found) { return found.device->tier_name == mode.device; };
    const auto home =
        static_cast<size_t>(std::find_if(all.begin(), all.end(), named) - all.begin());
    if (home == all.size() || all[home].opened == nullptr) continue;
    if (!plan.devices[home].left_out.empty()) continue;
    PartPlaces parts = options.fixed;
    parts.tensors.insert(mode.tensors.begin(), mode.tensors.end());
    parts.slots.insert(mode.slots.begin(), mode.slots.end());
    auto described = describe(home, parts);
    if (!problem->failed.empty()) return absl::OkStatus();
    if (!described.ok() || described->device.elsewhere.empty()) continue;
    PlanDevice& device = described->device;
    device.mode_of = home;
    for (PlanShare& share : device.elsewhere) share.what = mode.what;
    problem->fetches.push_back(described->needs.fetches);
    problem->slots.push_back(SlotsOn(all[home], parts.slots, options.file_mapped));
    plan.devices.push_back(std::move(device));
    problem->measured.push_back(problem->measured[home]);
    problem->guessed.push_back(problem->guessed[home]);
    problem->busy.push_back(problem->busy[home]);
    problem->helpers.emplace_back();
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<PlannedSlots> SlotsOf(const PlacementProblem& problem, const PlacedRange& range) {
  std::optional<PlannedSlots> all;
  double layers = 0, shares = 0;
  for (const auto& [layer, slots] : problem.slots[range.device]) {
    if (layer < range.begin || layer >= range.end) continue;
    if (!all) all = slots;
    ++layers;
    shares += slots.share;
  }
  if (all) all->share = shares / layers;
  return all;
}

absl::StatusOr<PlacementProblem> DescribeProblem(
    std::shared_ptr<const gguf::File> file, const ModelConfig& config, const SegmentLimits& limits,
    const Calibration& calibration, const ProblemOptions& options, DeviceSet* devices) {
  const NominalPasses passes = PassesOf(limits, options.request);
  PlacementProblem result;
  PlanProblem& plan = result.plan;
  plan.layers = static_cast<int>(config.n_layers);
  plan.prefill_tokens = static_cast<int>(passes.prefill_tokens);
  const auto reads = CountDecodeBytes(*file, config, limits);
  if (!reads.ok()) return reads.status();
  const double bytes_per_token =
      static_cast<double>(reads->weights) +
      static_cast<double>(reads->Kv(static_cast<int64_t>(passes.decode.positions)));
  std::vector<std::string> pools, domains;
  std::vector<Found> all;
  for (const CandidateDevice& candidate : options.candidates) {
    auto found = Find(candidate, calibration, bytes_per_token, devices);
    if (!found.ok()) return found.status();
    PlanDevice device;
    device.name = found->device->tier_name;
    device.tier = found->device->tier;
    device.left_out = candidate.left_out;
    device.pool = IndexOf(found->device->memory_pool, &pools);
    device.domain = IndexOf(found->device->bandwidth_domain, &domains);
    if (device.left_out.empty()) {
      auto open = devices->Open(device.name);
      if (open.ok()) {
        found->opened = *std::move(open);
      } else {
        device.left_out = std::string(open.status().message());
        const absl::Status why = OnDevice(device.name, open.status());
        if (!FaultyDevice(why).empty()) result.failed.push_back({device.name, why});
      }
    }
    result.measured.push_back(found->known.measured);
    result.guessed.push_back(found->known.guessed);
    result.busy.push_back(found->known.busy);
    plan.devices.push_back(std::move(device));
    all.push_back(*std::move(found));
  }
  result.helpers.resize(all.size());
  result.fetches.resize(all.size(), false);
  result.slots.resize(all.size());
  const auto inputs = std::make_shared<const DescribeInputs>(
      DescribeInputs{std::move(file), config, limits, options, passes});
  for (size_t i = 0; i < all.size(); ++i) {
    PlanDevice& device = plan.devices[i];
    if (all[i].opened != nullptr) {
      const uint64_t free = all[i].opened->info().memory_free;
      if (device.tier != "cpu" && free != 0) device.limit_bytes = free;
      const std::vector<Helper> helpers = HelpersOf(all[i], all, options);
      auto described = DescribeWatched(inputs, all[i], helpers, device, devices);
      if (IsGone(described.status())) {
        // It may be a helper that failed. The other devices' handles may be in use by the thread
        // that was given up, so the caller describes the problem again.
        const std::string faulty = FaultyDevice(described.status());
        result.failed.push_back({faulty, described.status()});
        if (absl::IsDeadlineExceeded(described.status())) devices->host().ReplaceTeam();
        devices->Forget(faulty);
        return result;
      } else if (!described.ok()) {
        return described.status();
      } else {
        device = std::move(described->device);
        result.helpers[i] = std::move(described->helper);
      }
      if (!MakesSense(device)) device.left_out = "its sizes or times are beyond reason";
    }
    if (!device.left_out.empty()) RunNothing(static_cast<size_t>(plan.units()), &device);
    if (const auto limit = options.memory_limits.find(device.name);
        limit != options.memory_limits.end()) {
      device.limit_bytes = std::min(device.limit_bytes, limit->second);
    }
  }
  AddPools(devices->inventory(), pools, &plan);
  if (absl::Status s = AddParts(inputs, all, devices, &result); !s.ok()) return s;
  SpreadDomains(all, &plan);
  const double row = static_cast<double>(config.n_embd) * sizeof(float);
  AddTransfers(all, row, passes.prefill_tokens, &plan);
  return result;
}

}  // namespace trine
