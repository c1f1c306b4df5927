// Implements trine bench --branching: measures the costs of capture, replay and regression, and
// compares each with its bar, the most that it may cost.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/terminal/progress.h"

namespace trine {

// Prints a table. Returns the exit code: 0 if all bars held, 1 if one was missed or not measured.
int RunBranchingBench(const EngineArguments& arguments);

// Measures costs and gains of checkpoints, regressions and forks of sessions (session_bench.cc).
// Prints rows of the command's table. Returns whether all bars held.
absl::StatusOr<bool> RunSessionBench(const EngineArguments& arguments);

// Measures which part of a token's time is the host's own (session_bench.cc). Prints a row of the
// command's table. Returns whether the bar held.
absl::StatusOr<bool> RunHostTimeBench(const EngineArguments& arguments);

// Returns the options to load a model with, without the warning that it was trained with a smaller
// context. `progress` must outlive the loading.
EngineOptions BranchingOptions(const EngineArguments& arguments, Progress* progress);

// Returns `n` tokens, always the same ones.
std::vector<int32_t> BranchingTokens(int64_t n, int64_t n_vocab);

double Median(std::vector<double> samples);

}  // namespace trine
