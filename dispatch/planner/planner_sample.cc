// Measures how long it takes to find a placement for random problems of eight devices and two
// hundred layers, and whether it was proven best. A tool, not a test.
//
//   trine-planner-sample [GROUPS [FROM TO]]    GROUPS: the devices that share, such as 'pair'
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dispatch/planner/planner.h"
#include "dispatch/planner/shapes.h"

namespace trine {
namespace {

constexpr int kDevices = 8, kLayers = 200;

// The devices that share: the first two, the first three, two and two, the first four, all.
struct Grouping {
  const char* name;
  size_t (*of)(int device);
  bool has_cpu_and_igpu;  // with their own speeds; false: all devices are of one kind
};
constexpr Grouping kGroupings[] = {
    {"pair", [](int d) { return static_cast<size_t>(d < 2 ? 0 : d - 1); }, true},
    {"three", [](int d) { return static_cast<size_t>(d < 3 ? 0 : d - 2); }, true},
    {"pairs", [](int d) { return static_cast<size_t>(d / 2); }, false},
    {"four", [](int d) { return static_cast<size_t>(d < 4 ? 0 : d - 3); }, false},
    {"all", [](int) { return size_t{0}; }, false},
};

class Drawn {
 public:
  Drawn(uint32_t seed, const Grouping& grouping) : random_(seed), grouping_(grouping) {}

  PlanProblem Problem() {
    PlanProblem problem;
    problem.layers = kLayers;
    problem.prefill_tokens = 512;
    uneven_layers_ = One(3) ? 0 : One(2) ? 0.5 : 0.1;
    uneven_devices_ = One(2) ? 0 : 0.4 * Below(1);
    uneven_bytes_ = One(2) ? 0 : 0.1;
    alike_ = One(3);
    for (int unit = 0; unit < kLayers + 2; ++unit) {
      const bool end = unit == 0 || unit == kLayers + 1;
      layer_bytes_.push_back((end ? 500 : 400) * Around(1, uneven_layers_) * 1048576);
    }
    AddPools(&problem);
    AddDevices(&problem);
    AddTransfers(&problem);
    return problem;
  }

 private:
  double Below(double most) { return most * static_cast<double>(random_() % 65536) / 65536; }
  double In(double least, double most) { return least + Below(most - least); }
  double Power(double least, double most) { return std::pow(10, In(least, most)); }
  double Around(double middle, double share) { return middle * In(1 - share, 1 + share); }
  bool One(uint32_t of) { return random_() % of == 0; }
  size_t groups() const { return grouping_.of(kDevices - 1) + 1; }

  void AddPools(PlanProblem* problem) {
    double total = 0;
    for (const double bytes : layer_bytes_) total += bytes;
    const double first = In(0.1, 1.2), others = In(0.2, 1.5);
    for (size_t g = 0; g < groups(); ++g) {
      double share = g == 0 ? first : others / static_cast<double>(groups() - 1);
      if (g > 0 && !alike_) share *= In(0.6, 1.4);
      if (groups() == 1) share = In(1.02, 1.6);
      PlanPool pool;
      pool.name = absl::StrCat("pool", g);
      pool.capacity_bytes = static_cast<uint64_t>(share * total);
      problem->pools.push_back(std::move(pool));
    }
  }

  void AddDevices(PlanProblem* problem) {
    const double cpu = Power(0, 1.2), igpu = Power(0, 1.2), dgpu = Power(0, 1.2);
    const double run = Power(2, 6), of_the_pool = In(0.5, 1.1);
    for (int d = 0; d < kDevices; ++d) {
      PlanDevice device;
      device.name = d == 0 ? "cpu" : absl::StrCat("gpu", d);
      device.tier = d == 0 ? "cpu" : "gpu";
      device.pool = device.domain = grouping_.of(d);
      device.fixed_bytes = 100 << 20;
      const auto same = [&](int other) { return grouping_.of(other) == device.pool; };
      if ((d > 0 && same(d - 1)) || (d + 1 < kDevices && same(d + 1))) {
        device.limit_bytes = static_cast<uint64_t>(
            of_the_pool * static_cast<double>(problem->pools[device.pool].capacity_bytes));
      }
      double speed = alike_ ? dgpu : Around(dgpu, 0.35);
      if (grouping_.has_cpu_and_igpu && d < 2) speed = d == 0 ? cpu : igpu;
      const double of_the_domain = In(0.2, 1);
      for (const double bytes : layer_bytes_) {
        const double ns = Around(0.1 * bytes / speed, uneven_devices_);
        const auto shared = static_cast<int64_t>(ns * of_the_domain);
        device.decode.unit_ns.push_back(static_cast<int64_t>(ns));
        device.decode.domain_ns.push_back(shared);
        device.prefill.unit_ns.push_back(static_cast<int64_t>(4 * ns));
        device.prefill.domain_ns.push_back(shared);
        device.weight_bytes.push_back(static_cast<uint64_t>(Around(bytes, uneven_bytes_)));
      }
      device.decode.run_ns = device.prefill.run_ns = static_cast<int64_t>(run);
      problem->devices.push_back(std::move(device));
    }
  }

  // Draws transfers of one of three kinds: all alike, the sum of a way out and a way in, or random.
  void AddTransfers(PlanProblem* problem) {
    const double scale = Power(0, 8);
    const uint32_t kind = random_() % 3;
    std::vector<double> out, in;
    for (int d = 0; d < kDevices; ++d) {
      out.push_back(Below(1));
      in.push_back(Below(1));
    }
    for (auto* rows : {&problem->decode_transfer_ns, &problem->prefill_transfer_ns}) {
      for (size_t from = 0; from < kDevices; ++from) {
        rows->emplace_back();
        for (size_t to = 0; to < kDevices; ++to) {
          const double cost = kind == 0 ? 1 : kind == 1 ? out[from] + in[to] : In(0.2, 2);
          rows->back().push_back(static_cast<int64_t>(scale * cost));
        }
      }
    }
  }

  std::mt19937 random_;
  const Grouping& grouping_;
  double uneven_layers_ = 0, uneven_devices_ = 0, uneven_bytes_ = 0;
  bool alike_ = false;
  std::vector<double> layer_bytes_;
};

double ProcessorMs() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

void Sample(const Grouping& grouping, uint32_t from, uint32_t to) {
  std::printf("%-6s %-12s %8s %8s %8s %8s %9s\n", "groups", "goal", "fit", "median", "95 %", "most",
              "not exact");
  for (const PlanGoal& goal : kPlanGoals) {
    std::vector<double> times;
    int inexact = 0;
    for (uint32_t seed = from; seed < to; ++seed) {
      const PlanProblem problem = Drawn(seed, grouping).Problem();
      const double begin = ProcessorMs();
      const auto placement = FindPlacement(problem, goal.Options());
      const double time = ProcessorMs() - begin;
      if (!placement.ok()) continue;  // nothing fits
      times.push_back(time);
      inexact += placement->exact ? 0 : 1;
    }
    if (times.empty()) continue;
    std::sort(times.begin(), times.end());
    std::printf("%-6s %-12s %8zu %8.1f %8.1f %8.1f %9d\n", grouping.name, goal.name, times.size(),
                times[times.size() / 2], times[times.size() * 95 / 100], times.back(), inexact);
  }
}

}  // namespace
}  // namespace trine

int main(int argc, char** argv) {
  const uint32_t from = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 1;
  const uint32_t to = argc > 3 ? static_cast<uint32_t>(std::atoi(argv[3])) : from + 100;
  for (const trine::Grouping& grouping : trine::kGroupings) {
    if (argc < 2 || std::strcmp(argv[1], grouping.name) == 0) trine::Sample(grouping, from, to);
  }
  return 0;
}
