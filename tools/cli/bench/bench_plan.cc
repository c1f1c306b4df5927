#include "tools/cli/bench/bench_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "dispatch/cost/size_rule.h"

namespace trine {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 30;
constexpr int64_t kMostPass = int64_t{1} << 16;
constexpr int64_t kMostThreads = 1024;
// The most values of one list, so that a range stays reasonable.
constexpr size_t kMostValues = 1000;

bool ParseCount(absl::string_view text, int64_t* value) {
  // SimpleAtoi would accept blanks and signs.
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(text, value);
}

// Parses an item of a list, a number or a range. Returns false when it is neither.
bool ParseItem(absl::string_view text, std::vector<int64_t>* values) {
  const size_t dash = text.find('-');
  int64_t first = 0, last = 0, step = 1;
  if (dash == absl::string_view::npos) {
    if (!ParseCount(text, &first)) return false;
    values->push_back(first);
    return true;
  }
  absl::string_view end = text.substr(dash + 1);
  const size_t sign = end.find_first_of("+*");
  const bool multiply = sign != absl::string_view::npos && end[sign] == '*';
  if (sign != absl::string_view::npos) {
    if (!ParseCount(end.substr(sign + 1), &step)) return false;
    end = end.substr(0, sign);
  }
  if (!ParseCount(text.substr(0, dash), &first) || !ParseCount(end, &last)) return false;
  const bool advances = multiply ? step > 1 && first > 0 : step > 0;
  if (!advances || last < first) return false;
  for (int64_t value = first; value <= last && values->size() <= kMostValues;) {
    values->push_back(value);
    const int64_t room = std::numeric_limits<int64_t>::max();
    if (multiply ? value > room / step : value > room - step) break;
    value = multiply ? value * step : value + step;
  }
  return true;
}

absl::StatusOr<std::vector<std::string>> ParseNames(const std::string& option,
                                                    const std::vector<std::string>& texts,
                                                    const std::vector<std::string>& known) {
  std::vector<std::string> names;
  for (const std::string& text : texts) {
    for (const absl::string_view name : absl::StrSplit(text, ',')) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(option, ": '", name, "' is none of ", absl::StrJoin(known, ", ")));
      }
      names.emplace_back(name);
    }
  }
  return names;
}

absl::StatusOr<std::vector<BenchTest>> PromptAndGen(const std::vector<std::string>& texts) {
  std::vector<BenchTest> tests;
  for (const std::string& text : texts) {
    const std::vector<std::string> parts = absl::StrSplit(text, ',');
    BenchTest test;
    if (parts.size() != 2 || !ParseCount(parts[0], &test.n_prompt) ||
        !ParseCount(parts[1], &test.n_gen) || test.n_prompt < 1 || test.n_gen < 1 ||
        test.n_prompt > kMostTokens || test.n_gen > kMostTokens) {
      return absl::InvalidArgumentError(
          absl::StrCat("-pg: '", text, "' is no pair of lengths, such as 512,128"));
    }
    tests.push_back(test);
  }
  return tests;
}

absl::StatusOr<std::vector<BenchTest>> Tests(const BenchLists& lists) {
  const auto prompts = ParseCounts("--n-prompt", lists.n_prompt, 0, kMostTokens);
  if (!prompts.ok()) return prompts.status();
  const auto gens = ParseCounts("--n-gen", lists.n_gen, 0, kMostTokens);
  if (!gens.ok()) return gens.status();
  const auto both = PromptAndGen(lists.prompt_and_gen);
  if (!both.ok()) return both.status();
  const auto depths = ParseCounts("--n-depth", lists.n_depth, 0, kMostTokens);
  if (!depths.ok()) return depths.status();

  std::vector<BenchTest> tests;
  for (const int64_t depth : *depths) {
    for (const int64_t n : *prompts) {
      if (n > 0) tests.push_back({n, 0, depth});
    }
    for (const int64_t n : *gens) {
      if (n > 0) tests.push_back({0, n, depth});
    }
    for (const BenchTest& test : *both) tests.push_back({test.n_prompt, test.n_gen, depth});
  }
  if (tests.empty()) {
    return absl::InvalidArgumentError("with a prompt and a generation of 0 nothing is measured");
  }
  for (const BenchTest& test : tests) {
    if (test.Positions() <= kMostTokens) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        test.Name(), " takes a context of ", test.Positions(), "; ", kMostTokens, " is the most"));
  }
  return tests;
}

// Returns a setup for each split that was asked for, or one setup if there is none. Sets only the
// splits.
absl::StatusOr<std::vector<BenchSetup>> ParseSplits(const BenchLists& lists) {
  std::vector<BenchSetup> setups;
  for (const std::string& text : lists.tensor_split) {
    auto split = ParseSplit(text);
    if (!split.ok()) {
      absl::string_view why = split.status().message();
      absl::ConsumePrefix(&why, "tensor split: ");
      return absl::InvalidArgumentError(absl::StrCat("--tensor-split: ", why));
    }
    BenchSetup& setup = setups.emplace_back();
    setup.tensor_split = text;
    setup.split = *std::move(split);
  }
  if (setups.empty()) setups.emplace_back();
  return setups;
}

// Returns the modes with their texts; the text of the default is "".
absl::StatusOr<std::vector<std::pair<std::string, DispatchMode>>> ParseDispatches(
    const BenchLists& lists) {
  std::vector<std::pair<std::string, DispatchMode>> modes;
  if (lists.dispatch.empty()) modes.emplace_back("", DispatchMode());
  for (const std::string& text : lists.dispatch) {
    for (const absl::string_view item : absl::StrSplit(text, ',')) {
      const auto mode = ParseDispatch(std::string(item));
      if (!mode.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("--dispatch: ", mode.status().message()));
      }
      modes.emplace_back(item, *mode);
    }
  }
  return modes;
}

}  // namespace

std::string BenchTest::Name() const {
  std::string name;
  if (n_prompt > 0) absl::StrAppend(&name, "pp", n_prompt);
  if (n_prompt > 0 && n_gen > 0) name += "+";
  if (n_gen > 0) absl::StrAppend(&name, "tg", n_gen);
  if (n_depth > 0) absl::StrAppend(&name, " @ d", n_depth);
  return name;
}

int64_t BenchPlan::Context() const {
  int64_t positions = 0;
  for (const BenchTest& test : tests) positions = std::max(positions, test.Positions());
  return positions;
}

absl::StatusOr<std::vector<int64_t>> ParseCounts(const std::string& option,
                                                 const std::vector<std::string>& texts,
                                                 int64_t least, int64_t most) {
  std::vector<int64_t> values;
  for (const std::string& text : texts) {
    for (const absl::string_view item : absl::StrSplit(text, ',')) {
      if (!ParseItem(item, &values)) {
        return absl::InvalidArgumentError(absl::StrCat(
            option, ": '", item, "' is neither a whole number nor a range such as 1-4 or 1-8*2"));
      }
    }
  }
  if (values.size() > kMostValues) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": ", kMostValues, " values are the most"));
  }
  for (const int64_t value : values) {
    if (value >= least && value <= most) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": '", value, "' is no whole number from ", least, " to ", most));
  }
  return values;
}

absl::StatusOr<BenchPlan> MakeBenchPlan(const BenchLists& lists, const PlacementRequest& asked) {
  BenchPlan plan;
  auto tests = Tests(lists);
  if (!tests.ok()) return tests.status();
  plan.tests = *std::move(tests);
  auto threads = ParseCounts("--threads", lists.threads, 1, kMostThreads);
  if (!threads.ok()) return threads.status();
  if (threads->empty()) threads->push_back(0);
  auto batches = ParseCounts("--batch-size", lists.batch, 1, kMostPass);
  if (!batches.ok()) return batches.status();
  if (batches->empty()) batches->push_back(0);
  auto ubatches = ParseCounts("--ubatch-size", lists.ubatch, 1, kMostPass);
  if (!ubatches.ok()) return ubatches.status();
  if (ubatches->empty()) ubatches->push_back(0);
  const std::vector<std::string> types = {"f16", "f32", "bf16", "q8_0"};
  const auto types_k = ParseNames("--cache-type-k", lists.type_k, types);
  if (!types_k.ok()) return types_k.status();
  const auto types_v = ParseNames("--cache-type-v", lists.type_v, types);
  if (!types_v.ok()) return types_v.status();
  auto splits = ParseSplits(lists);
  if (!splits.ok()) return splits.status();
  const auto dispatches = ParseDispatches(lists);
  if (!dispatches.ok()) return dispatches.status();
  for (const BenchSetup& split : *splits) {
    for (const int64_t batch : *batches) {
      for (const int64_t ubatch : *ubatches) {
        for (const std::string& k : *types_k) {
          for (const std::string& v : *types_v) {
            for (const auto& [given, mode] : *dispatches) {
              PlacementRequest request = asked;
              request.split = split.split;
              const std::string by_default = request.helps_prompts_only() ? "prompts" : "auto";
              const std::string text = given.empty() ? by_default : given;
              for (const int64_t n : *threads) {
                plan.setups.push_back(
                    {n, batch, ubatch, k, v, split.tensor_split, split.split, text, mode});
              }
            }
          }
        }
      }
    }
  }
  return plan;
}

uint64_t BenchOps::OpNs() const {
  uint64_t sum = 0;
  for (const OpTime& op : ops) sum += op.ns;
  return sum;
}

std::vector<double> BenchResult::TokensPerSecond() const {
  std::vector<double> speeds;
  for (const uint64_t ns : samples_ns) {
    speeds.push_back(1e9 * static_cast<double>(test.Tokens()) / static_cast<double>(ns));
  }
  return speeds;
}

double BenchResult::ReadBytesPerSecond() const {
  return reads ? Mean(TokensPerSecond()) * reads->Bytes() : 0;
}

double BenchResult::ShareOfMachine() const {
  if (!reads || reads->machine_bytes_per_second == 0) return 0;
  return ReadBytesPerSecond() / reads->machine_bytes_per_second;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double Deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace trine
