// Of trine bench --branching: how much of a token's time is the host's own.
#ifndef TRINE_TOOLS_CLI_HOST_TIME_BENCH_H_
#define TRINE_TOOLS_CLI_HOST_TIME_BENCH_H_

#include "absl/status/statusor.h"
#include "tools/cli/engine_arguments.h"

namespace trine {

// Prints a row of the command's table. Whether the bar was held.
absl::StatusOr<bool> RunHostTimeBench(const EngineArguments& arguments);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_HOST_TIME_BENCH_H_
