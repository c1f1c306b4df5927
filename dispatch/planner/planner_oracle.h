// Finds the best placement by trying all of them, for tests. Rates placements by docs/placement.md,
// with none of the planner's own code.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "dispatch/planner/placement.h"
#include "dispatch/planner/problem.h"

namespace trine {

struct Rated {
  std::vector<size_t> order;
  std::vector<int> ends;  // ends of segments, in units
  int64_t request_ns = 0;
  int64_t cycle_ns = 0;
  int64_t longest_stage_ns = 0;
  std::map<size_t, uint64_t> used;  // bytes, by device
};

// Lists all placements that keep to the limits.
class Everything {
 public:
  Everything(const PlanProblem& problem, const PlanOptions& options);
  const std::vector<Rated>& all() const { return all_; }

 private:
  void Grow(const std::vector<size_t>& order, const std::vector<int>& ends, int begin);
  void Rate(const std::vector<size_t>& order, const std::vector<int>& ends);

  const PlanProblem& problem_;
  const PlanOptions options_;
  const std::set<size_t> shared_;
  std::vector<Rated> all_;
};

// What a strategy minimises: the first number, then the second among equals, and so on.
using Objective = std::function<std::vector<int64_t>(const PlanProblem&, const Rated&)>;

std::vector<int64_t> Latency(const PlanProblem& problem, const Rated& rated);
std::vector<int64_t> Throughput(const PlanProblem& problem, const Rated& rated);
std::vector<int64_t> Balanced(const PlanProblem& problem, const Rated& rated);
// Units on the CPU, then 1024ths of the fullest GPU's memory.
std::vector<int64_t> Memory(const PlanProblem& problem, const Rated& rated);

// Returns the best of `all`, ties decided by docs/placement.md's rule, or null if there are none.
const Rated* BestOf(const PlanProblem& problem, const std::vector<Rated>& all,
                    const Objective& objective);

std::string RatedText(const PlanProblem& problem, const Rated& rated);

}  // namespace trine
