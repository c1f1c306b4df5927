#include "dispatch/planner/strategy.h"

#include <algorithm>
#include <utility>

#include "dispatch/planner/chain.h"
#include "dispatch/planner/searches.h"

namespace trine::planner {
namespace {

class StrategySearch {
 public:
  StrategySearch(const PlanOptions& options, Chain chain, DeviceMask required)
      : options_(options), chain_(std::move(chain)), required_(required) {}

  Outcome Run() {
    switch (options_.strategy) {
      case Strategy::kMemory:
        return Memory();
      case Strategy::kBalanced:
        return Finish(SearchBottleneck(Times(false), Whole(), options_.max_steps));
      case Strategy::kAuto:
        break;
    }
    if (options_.optimize == Optimize::kThroughput) {
      return Finish(SearchBottleneck(Times(true), Whole(), options_.max_steps));
    }
    return Latency();
  }

 private:
  Outcome Latency() {
    BottleneckFound found;
    found.found = SearchSum(MakeSumProblem(chain_, required_), Whole(), options_.max_steps);
    found.level = found.found.cost / kCostPerNs;
    return Finish(found);
  }

  // Returns a problem with the measure of each device that `measure` returns.
  template <class Measure>
  BottleneckProblem Measured(bool pipeline, Measure measure) const {
    BottleneckProblem problem{&chain_, {}, {}, pipeline, required_};
    for (const ChainDevice& device : chain_.devices) problem.stages.push_back(measure(device));
    return problem;
  }

  BottleneckProblem Times(bool pipeline) const {
    BottleneckProblem problem = Measured(pipeline, [](const ChainDevice& device) {
      return StageMeasure{.used = device.time, .fixed = device.run_ns};
    });
    problem.held = chain_.workers;
    if (pipeline) {
      problem.held.insert(problem.held.end(), chain_.domains.begin(), chain_.domains.end());
    }
    return problem;
  }

  BottleneckProblem Fills() const {
    return Measured(false, [](const ChainDevice& device) {
      return StageMeasure{.used = device.bytes,
                          .fixed = device.fixed_bytes,
                          .whole = std::max<int64_t>(device.limit_bytes, 1),
                          .counted = !device.cpu};
    });
  }

  // Puts only those units on the CPU that do not fit on the GPUs, then fills the GPUs alike.
  Outcome Memory() {
    LevelEffort effort;
    effort.max_steps = options_.max_steps;
    const auto fits = [&](int cpu_units) {
      for (ChainDevice& device : chain_.devices) {
        if (device.cpu) device.max_units = cpu_units;
      }
      return !Whole().empty() || SearchLevel(MakeSumProblem(chain_, required_), effort).has_value();
    };
    int low = 0;
    int high = chain_.units;
    while (low < high) {
      const int middle = (low + high) / 2;
      fits(middle) ? high = middle : low = middle + 1;
    }
    fits(low);
    const uint64_t left = options_.max_steps - std::min(options_.max_steps, effort.steps);
    Outcome outcome = Finish(SearchBottleneck(Fills(), Whole(), left));
    outcome.exact = outcome.exact && !effort.exhausted;
    outcome.steps += effort.steps;
    return outcome;
  }

  // Returns placements that fit only because the ends share a matrix, which searches count twice.
  std::vector<Path> Whole() const {
    std::vector<Path> whole;
    for (const int d : chain_.WholeWhenTied()) {
      if ((required_ & ~One(d)) == 0) whole.push_back(Path{}.With(d, chain_.units));
    }
    return whole;
  }

  Outcome Finish(const BottleneckFound& found) const {
    Outcome outcome;
    outcome.exact = found.found.exact;
    outcome.steps = found.found.steps;
    if (!found.found.ok()) return outcome;
    outcome.answer = Answer{RangesOf(chain_, found.found.path), found.level};
    return outcome;
  }

  const PlanOptions& options_;
  Chain chain_;
  const DeviceMask required_;
};

}  // namespace

Outcome Search(const PlanProblem& problem, const PlanOptions& options,
               std::optional<size_t> required) {
  const std::vector<size_t> devices = SearchedDevices(problem, options.strategy);
  DeviceMask must = 0;
  if (required.has_value()) {
    const auto at = std::find(devices.begin(), devices.end(), *required);
    if (at == devices.end()) return {};
    must = One(static_cast<int>(at - devices.begin()));
  }
  if (devices.empty()) return {};
  Chain chain = MakeChain(problem, options.request, devices, must);
  return StrategySearch(options, std::move(chain), must).Run();
}

}  // namespace trine::planner
