#include "tools/cli/host_time_bench.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "runtime/generate.h"
#include "runtime/session.h"
#include "tools/cli/progress.h"

namespace trine {
namespace {

constexpr int64_t kTokens = 256;
constexpr int kTurns = 9;
constexpr double kBar = 0.03;

struct Turn {
  double token_us = 0;
  double share = 0;  // outside of plan runs
};

// An answer as `trine generate` gives it, from its second token on: sampled with the defaults, made
// text, looked through for stop strings.
absl::StatusOr<Turn> Measure(Engine* engine, uint64_t seed) {
  SessionOptions options;
  options.sampler.seed = seed;
  options.ignore_eos = true;
  auto session = Session::Create(engine, options);
  if (!session.ok()) return session.status();
  if (absl::Status s = (*session)->AppendText("Once upon a time", {}); !s.ok()) return s;
  if (absl::Status s = (*session)->Evaluate(); !s.ok()) return s;
  GenerateOptions generate;
  generate.max_tokens = kTokens;
  Generation result;
  const uint64_t before = engine->model()->run_ns();
  if (absl::Status s = Generate(session->get(), generate, &result); !s.ok()) return s;
  const double ns = (result.prompt_ms + result.generate_ms) * 1e6;
  const auto run_ns = static_cast<double>(engine->model()->run_ns() - before);
  return Turn{ns / static_cast<double>(kTokens) / 1e3, (ns - run_ns) / ns};
}

}  // namespace

absl::StatusOr<bool> RunHostTimeBench(const EngineArguments& arguments) {
  EngineOptions options = EngineOptionsOf(arguments);
  options.context = 2 * kTokens;
  Progress progress("loading");
  options.progress = [&](double fraction) {
    progress.Update(fraction);
    return true;
  };
  auto engine = Engine::Load(options);
  progress.Clear();
  if (!engine.ok()) return engine.status();
  std::vector<Turn> turns;
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto measured = Measure(engine->get(), static_cast<uint64_t>(turn));
    if (!measured.ok()) return measured.status();
    turns.push_back(*measured);
  }
  std::nth_element(turns.begin(), turns.begin() + kTurns / 2, turns.end(),
                   [](const Turn& a, const Turn& b) { return a.share < b.share; });
  const Turn& median = turns[kTurns / 2];
  const bool held = median.share <= kBar;
  std::printf(
      "| outside plan runs, %lld tokens, %d turns | %.1f us | %.1f us | %.2f %% | %.0f %% | %s |\n",
      static_cast<long long>(kTokens), kTurns, median.token_us, median.share * median.token_us,
      100 * median.share, 100 * kBar, held ? "held" : "missed");
  std::fflush(stdout);
  return held;
}

}  // namespace trine
