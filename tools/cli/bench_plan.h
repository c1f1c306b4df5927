// What `trine bench` is asked to measure: lists on the command line turned into setups and tests.
#ifndef TRINE_TOOLS_CLI_BENCH_PLAN_H_
#define TRINE_TOOLS_CLI_BENCH_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

// A prompt of n_prompt tokens, then n_gen tokens one by one, behind n_depth others.
struct BenchTest {
  int64_t n_prompt = 0;
  int64_t n_gen = 0;
  int64_t n_depth = 0;

  int64_t Tokens() const { return n_prompt + n_gen; }  // that are timed
  int64_t Positions() const { return n_depth + Tokens(); }
  bool IsDecode() const { return n_prompt == 0; }
  std::string Name() const;  // "pp512", "tg128 @ d4096", "pp512+tg128"
};

// What a model is loaded with.
struct BenchSetup {
  int64_t threads = 0;  // 0: one per core
  int64_t batch = 0;
  int64_t ubatch = 0;
  std::string type_k;
  std::string type_v;
  std::string tensor_split;
  std::string dispatch = "auto";
};

// As typed. A list is "1,2,4"; it may hold ranges, and an option may be repeated.
struct BenchLists {
  std::vector<std::string> n_prompt = {"512"};
  std::vector<std::string> n_gen = {"128"};
  std::vector<std::string> prompt_and_gen;  // "512,128" each
  std::vector<std::string> n_depth = {"0"};
  std::vector<std::string> threads;  // none: one per core
  std::vector<std::string> batch = {"2048"};
  std::vector<std::string> ubatch = {"512"};
  std::vector<std::string> type_k = {"f16"};
  std::vector<std::string> type_v = {"f16"};
  std::vector<std::string> tensor_split;  // one split each
  std::vector<std::string> dispatch = {"auto"};
};

struct BenchPlan {
  std::vector<BenchSetup> setups;
  std::vector<BenchTest> tests;  // of each setup

  int64_t Context() const;  // positions the longest test takes
};

// Every combination. INVALID_ARGUMENT names the option and the value that makes no sense.
absl::StatusOr<BenchPlan> MakeBenchPlan(const BenchLists& lists);

// "1,2", "1-4" (1, 2, 3, 4), "8-32+8" (8, 16, 24, 32), "1-8*2" (1, 2, 4, 8).
absl::StatusOr<std::vector<int64_t>> ParseCounts(const std::string& option,
                                                 const std::vector<std::string>& texts,
                                                 int64_t least, int64_t most);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_BENCH_PLAN_H_
