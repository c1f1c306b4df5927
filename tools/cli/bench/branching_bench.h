// Implements trine bench --branching: measures the costs of capture, replay and regression, and
// compares each with its bar, the most that it may cost.
#pragma once

#include "absl/status/statusor.h"
#include "tools/cli/options/engine_arguments.h"

namespace trine {

// Prints a table. Returns the exit code: 0 if all bars held, 1 if one was missed or not measured.
int RunBranchingBench(const EngineArguments& arguments);

// Measures costs and gains of checkpoints, regressions and forks of sessions (session_bench.cc).
// Prints rows of the command's table. Returns whether all bars held.
absl::StatusOr<bool> RunSessionBench(const EngineArguments& arguments);

// Measures which part of a token's time is the host's own (session_bench.cc). Prints a row of the
// command's table. Returns whether the bar held.
absl::StatusOr<bool> RunHostTimeBench(const EngineArguments& arguments);

}  // namespace trine
