#include "dispatch/cost/rounds.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>

namespace trine {
namespace {

constexpr size_t kMostRunsOfARound = 16;  // more would not make the median much more certain

// Returns the value below which `part` of the values lie. REQUIRES: they are sorted, and not empty.
double Quantile(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double rest = place - std::floor(place);
  return sorted[below] * (1 - rest) + sorted[above] * rest;
}

}  // namespace

RepeatedCost Summarise(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double median = Quantile(values, 0.5);
  const double width = Quantile(values, 0.75) - Quantile(values, 0.25);
  return {median, median > 0 ? width / median : 0};
}

absl::StatusOr<Rounds> MeasureInRounds(int rounds, const std::vector<MeasureOnce>& things) {
  Rounds all;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> times;
    for (const MeasureOnce& thing : things) {
      const auto time = thing();
      if (!time.ok()) return time.status();
      times.push_back(*time);
    }
    all.push_back(std::move(times));
  }
  return all;
}

RepeatedCost SummariseRounds(const Rounds& rounds,
                             const std::function<double(const std::vector<double>&)>& cost) {
  std::vector<double> costs;
  for (const std::vector<double>& times : rounds) costs.push_back(cost(times));
  return Summarise(std::move(costs));
}

double SteadyNanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(now).count();
}

absl::StatusOr<double> TimeRound(const std::function<absl::Status()>& run,
                                 const NanosecondClock& clock, double budget_ns) {
  double last = clock();
  const auto time = [&]() -> absl::StatusOr<double> {
    if (absl::Status s = run(); !s.ok()) return s;
    const double begin = last;
    last = clock();
    return last - begin;
  };
  const auto first = time();
  if (!first.ok() || *first > budget_ns) return first;
  std::vector<double> times;
  double sum = 0;
  do {
    const auto ns = time();
    if (!ns.ok()) return ns;
    times.push_back(*ns);
    sum += *ns;
  } while (sum < budget_ns && times.size() < kMostRunsOfARound);
  return Summarise(std::move(times)).median;
}

}  // namespace trine
