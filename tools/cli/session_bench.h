// Of trine bench --branching: what checkpoints, ways back and forks of sessions cost, and what they
// gain.
#ifndef TRINE_TOOLS_CLI_SESSION_BENCH_H_
#define TRINE_TOOLS_CLI_SESSION_BENCH_H_

#include "absl/status/statusor.h"
#include "tools/cli/engine_arguments.h"

namespace trine {

// Prints rows of the command's table. Whether all bars were held.
absl::StatusOr<bool> RunSessionBench(const EngineArguments& arguments);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_SESSION_BENCH_H_
