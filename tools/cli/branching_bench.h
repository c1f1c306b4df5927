// trine bench --branching: what capture, replay and going back cost, held against their bars.
#ifndef TRINE_TOOLS_CLI_BRANCHING_BENCH_H_
#define TRINE_TOOLS_CLI_BRANCHING_BENCH_H_

#include "tools/cli/engine_arguments.h"

namespace trine {

// Prints a table. The exit code: 0 all bars held, 1 one was missed or could not be measured.
int RunBranchingBench(const EngineArguments& arguments);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_BRANCHING_BENCH_H_
