// What `trine bench` has measured, as numbers.
#ifndef TRINE_TOOLS_CLI_BENCH_RESULT_H_
#define TRINE_TOOLS_CLI_BENCH_RESULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugins/host_services.h"
#include "runtime/model/model.h"
#include "tools/cli/bench_plan.h"

namespace trine {

// The same for all results of a run.
struct BenchSubject {
  std::string model_path;
  std::string model_type;  // "llama 1.24B Q4_0"
  uint64_t model_bytes = 0;
  uint64_t model_parameters = 0;
  std::string backend;            // devices in the model's order: "cpu"
  std::string cpu;                // the machine's, whether it has layers or not; "": not known
  std::string cpu_level;          // instruction set level of the kernels, as the device names it
  std::vector<std::string> gpus;  // other devices with layers: "igpu0: chip, driver"
  std::string version;            // of trine
  std::vector<DeviceWeights> weights = {};
};

// A decoded token's reads, and the machine's.
struct BenchReads {
  double weight_bytes = 0;              // per token
  double kv_bytes = 0;                  // per token, at the mean depth
  double machine_bytes_per_second = 0;  // 0: not measured
  uint64_t machine_bytes = 0;           // that it was measured over

  double Bytes() const { return weight_bytes + kv_bytes; }
};

// Of one repetition beyond the timed ones, with the times of single ops taken.
struct BenchOps {
  int64_t n_tokens = 0;
  uint64_t wall_ns = 0;
  uint64_t run_ns = 0;  // of it, inside runs of plans
  std::vector<OpTime> ops;

  uint64_t OpNs() const;  // of run_ns, inside ops (waiting included)
};

struct BenchResult {
  BenchSetup setup;  // with the number of threads there were
  BenchTest test;
  std::string time;  // when it began: 2026-01-31T12:00:00Z
  uint64_t load_ns = 0;
  std::vector<uint64_t> samples_ns;  // one per repetition
  std::optional<BenchReads> reads;   // of a test that only decodes
  std::optional<BenchOps> ops;

  std::vector<double> TokensPerSecond() const;  // one per repetition
  double ReadBytesPerSecond() const;            // of the mean; 0 without reads
  double ShareOfMachine() const;                // of its read bandwidth; 0 where unknown
};

double Mean(const std::vector<double>& values);
double Deviation(const std::vector<double>& values);  // of a sample; 0 for one value

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_BENCH_RESULT_H_
