// Runs the tests of a benchmark on a loaded model. Tokens are pseudo-random and always the same.
// Nothing is sampled.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/engine.h"
#include "tools/cli/bench/bench_plan.h"

namespace trine {

class BenchRunner {
 public:
  // REQUIRES: the engine's context has room for every test. `engine` outlives the runner.
  explicit BenchRunner(Engine* engine);

  // Runs a part of a test before it is timed, because a first run takes longer: it touches memory
  // and wakes threads. The part is one token of a generation, or the whole prompt.
  absl::Status WarmUp(const BenchTest& test);
  // Runs one repetition and returns its nanoseconds, without the time to reach the test's depth.
  absl::StatusOr<uint64_t> Run(const BenchTest& test);
  // Runs one repetition with the times of single ops.
  absl::StatusOr<BenchOps> RunWithOps(const BenchTest& test);

 private:
  absl::Status Reach(int64_t depth);
  absl::Status Extend(int64_t n_tokens);
  absl::StatusOr<uint64_t> Time(const BenchTest& test);

  Engine* engine_;
  std::unique_ptr<Sequence> sequence_;
  std::vector<int32_t> tokens_;  // by position
};

// Returns the bytes that a token of the test reads. Returns nullopt if the test has a prompt, whose
// tokens share their reads.
absl::StatusOr<std::optional<BenchReads>> ReadsOf(const Engine& engine, const BenchTest& test);

// Sums the times that devices spend in calls, from its making on.
class BusyWatch {
 public:
  explicit BusyWatch(const Engine& engine);
  // Returns the shares of the time since the making. Returns none for a single device.
  std::vector<BusyShare> Shares() const;

 private:
  std::map<std::string, uint64_t> Sum() const;  // nanoseconds by device

  const Engine& engine_;
  const std::chrono::steady_clock::time_point begin_;
  const std::map<std::string, uint64_t> before_;
};

// Sums the choices of experts from its making on.
class SlotWatch {
 public:
  explicit SlotWatch(const Engine& engine) : engine_(engine), before_(Sum()) {}
  SlotUse Use() const;

 private:
  SlotUse Sum() const;

  const Engine& engine_;
  const SlotUse before_;
};

// Returns the facts about the model, the devices and the program that results show. `options` are
// those that the engine was loaded with.
BenchSubject DescribeSubject(const Engine& engine, const EngineOptions& options);

}  // namespace trine
