// Plans `trine bench`: turns the lists of the command line into setups and tests. Also has the
// types of their results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/cost/size_rule.h"
#include "dispatch/devices/split_spec.h"
#include "plugins/host_services.h"
#include "runtime/model/run/model.h"
#include "runtime/placement/placement_request.h"

namespace trine {

// A test: after n_depth other tokens, a prompt of n_prompt tokens, then n_gen tokens one by one.
struct BenchTest {
  int64_t n_prompt = 0;
  int64_t n_gen = 0;
  int64_t n_depth = 0;

  int64_t Tokens() const { return n_prompt + n_gen; }  // the number of timed tokens
  int64_t Positions() const { return n_depth + Tokens(); }
  bool IsDecode() const { return n_prompt == 0; }
  std::string Name() const;  // "pp512", "tg128 @ d4096", "pp512+tg128"
};

// The options that a model is loaded with.
struct BenchSetup {
  int64_t threads = 0;  // 0: one per core
  int64_t batch = 0;
  int64_t ubatch = 0;
  std::string type_k;
  std::string type_v;
  std::string tensor_split;  // as typed
  std::vector<SplitShare> split;
  std::string dispatch = "auto";  // as typed, or the default's name
  DispatchMode dispatch_mode;
};

// The options as typed. A text is a list such as "1,2,4", which may have ranges (ParseCounts);
// there is one text for each time that the option was given.
struct BenchLists {
  std::vector<std::string> n_prompt = {"512"};
  std::vector<std::string> n_gen = {"128"};
  std::vector<std::string> prompt_and_gen;  // "512,128" each
  std::vector<std::string> n_depth = {"0"};
  std::vector<std::string> threads;  // empty: one thread per core
  std::vector<std::string> batch;    // empty: as many as a pass may have
  std::vector<std::string> ubatch;   // empty: as generate does without the option
  std::vector<std::string> type_k = {"f16"};
  std::vector<std::string> type_v = {"f16"};
  std::vector<std::string> tensor_split;  // each entry is one split
  std::vector<std::string> dispatch;      // empty: as generate does without the option
};

struct BenchPlan {
  std::vector<BenchSetup> setups;
  std::vector<BenchTest> tests;  // run with each setup

  int64_t Context() const;  // the positions that the longest test takes
};

// Returns a plan with every combination. Returns INVALID_ARGUMENT, naming the option and the value,
// if a value makes no sense.
absl::StatusOr<BenchPlan> MakeBenchPlan(const BenchLists& lists,
                                        const PlacementRequest& asked = {});

// Parses "1,2", "1-4" (1, 2, 3, 4), "8-32+8" (8, 16, 24, 32) or "1-8*2" (1, 2, 4, 8). All values
// must be from `least` to `most`.
absl::StatusOr<std::vector<int64_t>> ParseCounts(const std::string& option,
                                                 const std::vector<std::string>& texts,
                                                 int64_t least, int64_t most);

// The options about devices that all setups share, as the user gave them.
struct BenchDevices {
  std::string devices;  // "cpu,igpu0"; "": every device that is usable
  std::string split_mode = "layer";
  std::string overrides;    // "ffn_up=igpu0,ffn_gate=igpu0"; "": none
  std::string cpu_experts;  // the layers whose experts go to the CPU: "20", "all"; "": none
  std::string hot_experts;  // the slots of each layer: "37"; "": not given
  std::string memory;       // "dgpu:6.0 GiB"; "": no limits
  std::string numerics = "exact";
  std::string plugin_options;  // "blas:tile=128;blas:x=1"; "": none
};

// The facts that all results of a setup share.
struct BenchSubject {
  std::string model_path;
  std::string model_type;  // "llama 1.24B Q4_0"
  uint64_t model_bytes = 0;
  uint64_t model_parameters = 0;
  std::string backend;            // devices in the model's order: "cpu"
  std::string cpu;                // the machine's CPU, even without layers; "": not known
  std::string cpu_level;          // the level of the CPU's kernels, as the device names it
  std::vector<std::string> gpus;  // other devices with layers: "igpu0: chip, driver"
  std::string version;            // trine's
  std::vector<DeviceWeights> weights = {};
  BenchDevices asked = {};
  std::string placement = {};  // "CPU(24L, fast, prompts with blas0)"
};

// The bytes that a decoded token reads, and the machine's read bandwidth.
struct BenchReads {
  double weight_bytes = 0;              // per token
  double kv_bytes = 0;                  // per token, at the mean depth
  double machine_bytes_per_second = 0;  // 0: not measured
  uint64_t machine_bytes = 0;           // the size of the memory read to measure that

  double Bytes() const { return weight_bytes + kv_bytes; }
};

// The times of single ops, from one more repetition after the timed repetitions.
struct BenchOps {
  int64_t n_tokens = 0;
  uint64_t wall_ns = 0;
  uint64_t run_ns = 0;  // the part of wall_ns inside runs of plans
  std::vector<OpTime> ops;

  uint64_t OpNs() const;  // the part of run_ns inside ops, with waiting
};

// The part of a test's time that a device spent in calls.
struct BusyShare {
  std::string device;
  double share = 0;
};

// The choices of experts in layers that have slots for some of them.
struct SlotUse {
  uint64_t choices = 0;      // 0: no layer has slots
  uint64_t in_slots = 0;     // the choices of experts in slots
  uint64_t moved = 0;        // the experts that were moved to slots
  uint64_t moved_bytes = 0;  // their weights
  bool in_place = false;     // there are no slots: devices read the experts in the file's pages

  double Share() const {
    return choices == 0 ? 0 : static_cast<double>(in_slots) / static_cast<double>(choices);
  }
};

// The result of a test with a setup.
struct BenchResult {
  BenchSetup setup;  // with the actual number of threads
  BenchTest test;
  std::string time;  // when it began: 2026-01-31T12:00:00Z
  uint64_t load_ns = 0;
  std::vector<uint64_t> samples_ns;  // one per repetition
  std::optional<BenchReads> reads;   // only for tests that only decode
  std::vector<BusyShare> busy;       // over all repetitions; empty: one device has run all of it
  SlotUse slots;                     // over all repetitions
  std::optional<BenchOps> ops;

  std::vector<double> TokensPerSecond() const;  // one per repetition
  double ReadBytesPerSecond() const;            // at the mean speed; 0 without reads
  double ShareOfMachine() const;  // part of the machine's read bandwidth; 0 if it is not known
};

double Mean(const std::vector<double>& values);
// Returns the standard deviation of the sample; 0 for one value.
double Deviation(const std::vector<double>& values);

}  // namespace trine
