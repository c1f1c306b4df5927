// Compares the result of every strategy that minimises something with all possible placements, for
// random problems.
#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dispatch/planner/planner.h"
#include "dispatch/planner/planner_oracle.h"
#include "dispatch/planner/strategy.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t Upto(int64_t most) { return static_cast<int64_t>(engine_() % (most + 1)); }
  bool OneIn(int n) { return Upto(n - 1) == 0; }

 private:
  std::mt19937 engine_;
};

// Uses small numbers, so that ties are common, and limits that are reached exactly.
PassTimes RandomTimes(Random& random, int units, bool alike, int64_t most) {
  PassTimes times;
  const int64_t each = random.Upto(most);
  const int64_t domain = random.Upto(most);
  for (int u = 0; u < units; ++u) {
    times.unit_ns.push_back(alike ? each : random.Upto(most));
    times.domain_ns.push_back(alike ? domain : random.Upto(most));
  }
  if (random.OneIn(3)) times.domain_ns.clear();
  if (random.OneIn(8)) times.unit_ns[random.Upto(units - 1)] = kCannotRun;
  times.run_ns = random.Upto(2);
  return times;
}

PlanDevice RandomDevice(Random& random, int units, size_t pools, const std::string& name) {
  PlanDevice device;
  device.name = name;
  device.tier = name == "d0" ? "cpu" : "gpu";
  device.pool = static_cast<size_t>(random.Upto(static_cast<int64_t>(pools) - 1));
  device.domain = static_cast<size_t>(random.Upto(2));
  const bool alike = random.OneIn(2);
  const int64_t most = random.OneIn(2) ? 5 : 50;
  device.decode = RandomTimes(random, units, alike, most);
  device.prefill = RandomTimes(random, units, alike, most);
  const int64_t each = random.Upto(10);
  for (int u = 0; u < units; ++u) {
    device.weight_bytes.push_back(static_cast<uint64_t>(alike ? each : random.Upto(10)));
    device.kv_bytes.push_back(static_cast<uint64_t>(random.Upto(2)));
  }
  if (random.OneIn(2)) device.kv_bytes.clear();
  device.fixed_bytes = static_cast<uint64_t>(random.Upto(3));
  if (!random.OneIn(3)) device.limit_bytes = static_cast<uint64_t>(random.Upto(10 * units));
  if (random.OneIn(12)) device.left_out = "lost";
  if (random.OneIn(4)) {
    device.tied_bytes = std::min(device.weight_bytes.front(), device.weight_bytes.back());
  }
  return device;
}

PlanProblem RandomProblem(Random& random, int more_layers = 0, int more_devices = 0) {
  PlanProblem problem;
  const size_t devices = static_cast<size_t>(2 + random.Upto(2) + more_devices);
  problem.layers = static_cast<int>(random.Upto((devices >= 4 ? 4 : 5) + more_layers));
  problem.prefill_tokens = static_cast<int>(1 + random.Upto(3));
  const size_t pools = static_cast<size_t>(1 + random.Upto(static_cast<int64_t>(devices) - 1));
  for (size_t i = 0; i < pools; ++i) {
    PlanPool& pool = problem.pools.emplace_back();
    pool.name = absl::StrCat("p", i);
    if (!random.OneIn(4)) {
      pool.capacity_bytes = static_cast<uint64_t>(random.Upto(10 * problem.units()));
    }
  }
  const int64_t transfer = random.OneIn(2) ? 3 : 60;
  for (size_t i = 0; i < devices; ++i) {
    problem.devices.push_back(RandomDevice(random, problem.units(), pools, absl::StrCat("d", i)));
    for (auto* rows : {&problem.decode_transfer_ns, &problem.prefill_transfer_ns}) {
      std::vector<int64_t>& row = rows->emplace_back();
      for (size_t to = 0; to < devices; ++to) row.push_back(random.Upto(transfer));
    }
  }
  if (random.OneIn(6)) {  // two devices that are alike
    problem.devices.back() = problem.devices.front();
    problem.devices.back().name = absl::StrCat("d", devices - 1);
    problem.devices.back().tier = "gpu";
  }
  return problem;
}

// Adds a mode of a random device: some of each unit is on another device.
void AddMode(Random& random, PlanProblem& problem) {
  const auto devices = static_cast<int64_t>(problem.devices.size());
  const auto first = static_cast<size_t>(random.Upto(devices - 1));
  const size_t other =
      (first + 1 + static_cast<size_t>(random.Upto(devices - 2))) % static_cast<size_t>(devices);
  if (problem.devices[first].mode_of.has_value() || problem.devices[other].mode_of.has_value()) {
    return;
  }
  PlanDevice mode = problem.devices[first];
  mode.name += "m";
  mode.mode_of = first;
  mode.fixed_bytes = static_cast<uint64_t>(random.OneIn(2) ? random.Upto(8) : 0);
  mode.left_out = random.OneIn(12) ? "not asked for" : "";
  PlanShare share;
  share.device = other;
  for (int u = 0; u < problem.units(); ++u) {
    const uint64_t moved = random.OneIn(3) ? 0 : mode.weight_bytes[u];
    mode.weight_bytes[u] -= static_cast<uint64_t>(random.Upto(static_cast<int64_t>(moved)));
    share.bytes.push_back(static_cast<uint64_t>(random.Upto(static_cast<int64_t>(moved) + 2)));
    for (auto [pass, times] :
         {std::pair(&mode.decode, &share.decode_ns), std::pair(&mode.prefill, &share.prefill_ns)}) {
      int64_t& ns = pass->unit_ns[u];
      const bool can_run = CanRun(problem.devices[first], u);
      if (can_run) ns += random.Upto(5);
      times->push_back(can_run ? random.Upto(ns) : 0);
    }
  }
  mode.tied_bytes = 0;
  mode.elsewhere = {share};
  problem.devices.push_back(mode);
  for (auto* rows : {&problem.decode_transfer_ns, &problem.prefill_transfer_ns}) {
    for (std::vector<int64_t>& row : *rows) row.push_back(random.Upto(3));
    rows->emplace_back(rows->front());
    for (int64_t& ns : rows->back()) ns = random.Upto(3);
  }
}

// Makes placements with equally many segments equally fast: only the rule for ties decides.
void Flatten(PlanProblem& problem) {
  for (PlanDevice& device : problem.devices) {
    for (PassTimes* times : {&device.decode, &device.prefill}) {
      for (int64_t& ns : times->unit_ns) ns = ns == kCannotRun ? ns : 1;
      times->run_ns = 0;
    }
  }
  const size_t n = problem.devices.size();
  problem.decode_transfer_ns.assign(n, std::vector<int64_t>(n));
  problem.prefill_transfer_ns = problem.decode_transfer_ns;
}

// Scales all times: rounding must not matter at any size.
void Scale(int64_t factor, PlanProblem& problem) {
  const auto scale = [factor](std::vector<int64_t>& times) {
    for (int64_t& ns : times) ns = ns == kCannotRun ? ns : ns * factor;
  };
  for (PlanDevice& device : problem.devices) {
    for (PassTimes* times : {&device.decode, &device.prefill}) {
      scale(times->unit_ns);
      scale(times->domain_ns);
      times->run_ns *= factor;
    }
  }
  for (PlanDevice& device : problem.devices) {
    for (PlanShare& share : device.elsewhere) {
      scale(share.decode_ns);
      scale(share.prefill_ns);
    }
  }
  for (std::vector<int64_t>& row : problem.decode_transfer_ns) scale(row);
  for (std::vector<int64_t>& row : problem.prefill_transfer_ns) scale(row);
}

// Describes the planner's placement as the brute-force placement is described, with the times of
// its report.
std::string RatedText(const PlanProblem& problem, const Placement& placement) {
  Rated r;
  r.request_ns = placement.request_ns;
  r.cycle_ns = placement.cycle_ns;
  r.longest_stage_ns = placement.longest_stage_ns;
  for (const PlacementSegment& s : placement.segments) {
    r.order.push_back(s.range.device);
    // A range that has only the embedding ends before the first layer.
    r.ends.push_back(s.range.head ? problem.units() : s.range.end + 1);
  }
  return RatedText(problem, r);
}

struct Case {
  const char* name;
  Strategy strategy;
  Optimize optimize;
  Objective objective;
};

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      {"latency", Strategy::kAuto, Optimize::kLatency, Latency},
      {"throughput", Strategy::kAuto, Optimize::kThroughput, Throughput},
      {"balanced", Strategy::kBalanced, Optimize::kLatency, Balanced},
      {"memory", Strategy::kMemory, Optimize::kLatency, Memory},
  };
  return *cases;
}

void Compare(const PlanProblem& problem, PlanOptions options, std::map<std::string, int>& seen) {
  const Everything everything(problem, options);
  options.strategy = Strategy::kMemory;
  const Everything without_modes(problem, options);
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    options.strategy = c.strategy;
    options.optimize = c.optimize;
    std::vector<Rated> all = (c.strategy == Strategy::kMemory ? without_modes : everything).all();
    // Strategy::kMemory has no use for modes.
    std::erase_if(all, [&](const Rated& r) {
      return c.strategy == Strategy::kMemory &&
             std::any_of(r.order.begin(), r.order.end(),
                         [&](size_t entry) { return problem.devices[entry].mode_of.has_value(); });
    });
    const Rated* const best = BestOf(problem, all, c.objective);
    const auto found = FindPlacement(problem, options);
    if (best == nullptr) {
      EXPECT_EQ(found.status().code(), absl::StatusCode::kResourceExhausted) << found.status();
      ++seen["nothing fits"];
      continue;
    }
    ASSERT_TRUE(found.ok()) << found.status() << "\n" << RatedText(problem, *best);
    EXPECT_TRUE(found->exact);
    EXPECT_TRUE(found->violations.empty()) << found->violations.front();
    EXPECT_EQ(RatedText(problem, *found), RatedText(problem, *best));
    ++seen[absl::StrCat(found->segments.size(), " segments")];
  }
}

TEST(PlannerBruteForceTest, EveryStrategyFindsTheBestOfAll) {
  std::map<std::string, int> seen;
  for (uint32_t seed = 0; seed < 1000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    PlanProblem problem = RandomProblem(random);
    if (random.OneIn(2)) Scale(1000003, problem);
    PlanOptions options;
    options.explain = false;
    options.request = {static_cast<int>(random.Upto(3)), static_cast<int>(1 + random.Upto(2))};
    Compare(problem, options, seen);
  }
  // The test is worth something only if all kinds of cases occur.
  for (const char* kind : {"nothing fits", "1 segments", "2 segments", "3 segments"}) {
    EXPECT_GT(seen[kind], 50) << kind;
  }
  EXPECT_GT(seen["4 segments"], 5);
}

// Some devices run units in several modes, with parts of units on other devices.
TEST(PlannerBruteForceTest, SoItDoesWithModes) {
  std::map<std::string, int> seen;
  int modes = 0;
  for (uint32_t seed = 40000; seed < 40300 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    PlanProblem problem = RandomProblem(random);
    AddMode(random, problem);
    if (problem.devices.size() < 5 && random.OneIn(2)) AddMode(random, problem);
    if (random.OneIn(2)) Scale(1000003, problem);
    PlanOptions options;
    options.explain = false;
    options.request = {static_cast<int>(random.Upto(3)), static_cast<int>(1 + random.Upto(2))};
    Compare(problem, options, seen);
    const auto found = FindPlacement(problem, options);
    for (size_t i = 0; found.ok() && i < found->segments.size(); ++i) {
      modes += problem.devices[found->segments[i].range.device].mode_of.has_value();
    }
  }
  EXPECT_GT(modes, 30);
  EXPECT_GT(seen["nothing fits"], 20);
  EXPECT_GT(seen["3 segments"], 20);
}

// Pools and domains are shared by three, four or five devices, some with equal layers.
TEST(PlannerBruteForceTest, SoItDoesWhereManyShare) {
  std::map<std::string, int> seen;
  for (uint32_t seed = 10000; seed < 10400 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    PlanProblem problem = RandomProblem(random, 0, 1);
    const size_t pools = static_cast<size_t>(1 + random.Upto(1));
    for (PlanDevice& device : problem.devices) {
      device.pool = std::min(device.pool, pools - 1);
      device.domain = std::min(device.domain, pools - 1);
    }
    for (PlanPool& pool : problem.pools) {
      pool.capacity_bytes = static_cast<uint64_t>((5 + random.Upto(5)) * problem.units());
    }
    PlanOptions options;
    options.explain = false;
    options.request = {static_cast<int>(random.Upto(3)), static_cast<int>(1 + random.Upto(2))};
    Compare(problem, options, seen);
  }
  for (const char* kind : {"nothing fits", "1 segments", "2 segments", "3 segments"}) {
    EXPECT_GT(seen[kind], 50) << kind;
  }
}

// Two devices want more of a pool than it has, and others have their own pools. So the search has
// to continue after its first guesses.
TEST(PlannerBruteForceTest, SoItDoesWhereAPairWantsMoreThanThereIs) {
  std::map<std::string, int> seen;
  for (uint32_t seed = 20000; seed < 20600 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    PlanProblem problem = RandomProblem(random, 4, 2);
    problem.pools.assign(problem.devices.size(), {"p", kNoLimit});
    problem.devices.resize(4);
    for (size_t i = 0; i < problem.devices.size(); ++i) {
      PlanDevice& device = problem.devices[i];
      device.pool = device.domain = i < 2 ? 0 : i;
      device.left_out.clear();
      const int64_t most = (i < 2 ? 6 : 4) * problem.units();
      device.limit_bytes = static_cast<uint64_t>(most / 2 + random.Upto(most / 2));
      // The pair is slightly faster.
      for (int64_t& ns : device.decode.unit_ns) ns = 20 + random.Upto(6) + (i < 2 ? 0 : 3);
      for (int64_t& ns : device.prefill.unit_ns) ns = 1;
    }
    problem.pools[0].capacity_bytes = static_cast<uint64_t>((3 + random.Upto(4)) * problem.units());
    problem.decode_transfer_ns.resize(4);
    problem.prefill_transfer_ns.resize(4);
    for (auto* rows : {&problem.decode_transfer_ns, &problem.prefill_transfer_ns}) {
      for (std::vector<int64_t>& row : *rows) row.resize(4);
    }
    PlanOptions options;
    options.explain = false;
    options.request = {1, static_cast<int>(1 + random.Upto(2))};
    Compare(problem, options, seen);
  }
  EXPECT_GT(seen["3 segments"], 50);
  EXPECT_GT(seen["4 segments"], 50);
}

TEST(PlannerBruteForceTest, TiesGoByTheRule) {
  std::map<std::string, int> seen;
  for (uint32_t seed = 0; seed < 500 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    PlanProblem problem = RandomProblem(random, 1);
    Flatten(problem);
    PlanOptions options;
    options.explain = false;
    options.request = {1, 1};
    Compare(problem, options, seen);
  }
  EXPECT_GT(seen["4 segments"], 5);
}

// Explanations come from searches that must use a device which the best placement does not use.
TEST(PlannerBruteForceTest, SoDoesASearchWithADeviceThatMustBeUsed) {
  int found = 0;
  for (uint32_t seed = 5000; seed < 5300 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const PlanProblem problem = RandomProblem(random);
    PlanOptions options;
    options.request = {static_cast<int>(random.Upto(3)), static_cast<int>(1 + random.Upto(2))};
    const Everything everything(problem, options);
    for (size_t d = 0; d < problem.devices.size(); ++d) {
      std::vector<Rated> with;
      for (const Rated& r : everything.all()) {
        if (std::count(r.order.begin(), r.order.end(), d) > 0) with.push_back(r);
      }
      for (const Case& c : Cases()) {
        if (c.strategy == Strategy::kMemory) continue;
        SCOPED_TRACE(c.name);
        options.strategy = c.strategy;
        options.optimize = c.optimize;
        const Rated* const best = BestOf(problem, with, c.objective);
        const planner::Outcome outcome = planner::Search(problem, options, d);
        ASSERT_EQ(outcome.answer.has_value(), best != nullptr);
        if (best == nullptr) continue;
        EXPECT_EQ(outcome.answer->objective, c.objective(problem, *best).front());
        ++found;
      }
    }
  }
  EXPECT_GT(found, 500);
}

}  // namespace
}  // namespace trine
