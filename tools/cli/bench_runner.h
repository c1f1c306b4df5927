// Runs the tests of a benchmark on a loaded model. Tokens are pseudo-random and always the same;
// nothing is sampled.
#ifndef TRINE_TOOLS_CLI_BENCH_RUNNER_H_
#define TRINE_TOOLS_CLI_BENCH_RUNNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine.h"
#include "tools/cli/bench_plan.h"
#include "tools/cli/bench_result.h"

namespace trine {

class BenchRunner {
 public:
  // The engine's context takes every test.
  explicit BenchRunner(Engine* engine);

  // What comes first costs more: memory is touched, threads wake up. One token of a generation is
  // enough for that, and all of a prompt.
  absl::Status WarmUp(const BenchTest& test);
  // One repetition, in nanoseconds: from the test's depth, which is reached before the clock runs.
  absl::StatusOr<uint64_t> Run(const BenchTest& test);
  // One repetition with the times of single ops.
  absl::StatusOr<BenchOps> RunWithOps(const BenchTest& test);

 private:
  absl::Status Reach(int64_t depth);
  absl::Status Extend(int64_t n_tokens);
  absl::StatusOr<uint64_t> Time(const BenchTest& test);

  Engine* engine_;
  std::unique_ptr<Sequence> sequence_;
  std::vector<int32_t> tokens_;  // by position
};

// What a test's tokens read; none for one with a prompt, whose tokens share what they read.
absl::StatusOr<std::optional<BenchReads>> ReadsOf(const Engine& engine, const BenchTest& test);

BenchSubject DescribeSubject(const Engine& engine);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_BENCH_RUNNER_H_
