#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/engine/generate.h"
#include "runtime/engine/session.h"
#include "tools/cli/bench/branching_bench.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kDepth = 4096;  // tokens before a regression
constexpr int kRegressTurns = 60;
constexpr double kSessionRegressBar = 20e-6;
// Compares branches over a common prefix with the same number of requests that each read the
// prefix.
constexpr int64_t kPrefix = 1000, kBranchTokens = 64;
constexpr int kBranches = 8, kFanOutTurns = 3;
constexpr double kFanOutBar = 1.0 / 3;

double Seconds(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class SessionBench {
 public:
  explicit SessionBench(Engine* engine) : engine_(engine) {}

  absl::Status Run() {
    if (absl::Status s = MeasurePoints(); !s.ok()) return s;
    return MeasureFanOut();
  }
  bool held() const { return held_; }

 private:
  absl::StatusOr<std::unique_ptr<Session>> Open(uint64_t seed) {
    SessionOptions options;
    options.sampler.seed = seed;
    options.ignore_eos = true;
    return Session::Create(engine_, options);
  }
  std::vector<int32_t> Tokens(int64_t n) const {
    return BranchingTokens(n, engine_->config().n_vocab);
  }
  void Hold(bool held) { held_ = held_ && held; }

  static void PrintTime(const char* what, const std::vector<double>& samples, double bar) {
    const double median = Median(samples);
    std::printf("| %s at %lld tokens, %zu turns | | %.2f us (most %.2f us) | | ", what,
                static_cast<long long>(kDepth), samples.size(), median * 1e6,
                *std::max_element(samples.begin(), samples.end()) * 1e6);
    if (bar == 0) std::printf("| |\n");
    if (bar != 0) std::printf("%.0f us | %s |\n", bar * 1e6, median > bar ? "missed" : "held");
    std::fflush(stdout);
  }

  // Reads a token between checkpoint and regression, so that there is something to undo.
  absl::Status MeasurePoints() {
    auto session = Open(1);
    if (!session.ok()) return session.status();
    if (absl::Status s = (*session)->Append(Tokens(kDepth)); !s.ok()) return s;
    if (absl::Status s = (*session)->Evaluate(); !s.ok()) return s;
    std::vector<double> checkpoint, regress, fork;
    for (int turn = 0; turn < kRegressTurns; ++turn) {
      Clock::time_point begin = Clock::now();
      const auto t = (*session)->Checkpoint();
      checkpoint.push_back(Seconds(begin));
      if (!t.ok()) return t.status();
      const auto token = (*session)->Sample();
      if (!token.ok()) return token.status();
      if (absl::Status s = (*session)->Evaluate(); !s.ok()) return s;
      begin = Clock::now();
      const absl::Status back = (*session)->Regress(*t);
      regress.push_back(Seconds(begin));
      if (!back.ok()) return back;
      if (absl::Status s = (*session)->Forget(*t); !s.ok()) return s;
      begin = Clock::now();
      const auto made = (*session)->Fork();
      fork.push_back(Seconds(begin));
      if (!made.ok()) return made.status();
    }
    PrintTime("checkpoint of a session", checkpoint, 0);
    PrintTime("regress of a session", regress, kSessionRegressBar);
    PrintTime("fork of a session", fork, 0);
    Hold(Median(regress) <= kSessionRegressBar);
    return absl::OkStatus();
  }

  absl::Status Separate() {
    GenerateOptions options;
    options.max_tokens = kBranchTokens;
    for (int i = 0; i < kBranches; ++i) {
      auto session = Open(static_cast<uint64_t>(i));
      if (!session.ok()) return session.status();
      if (absl::Status s = (*session)->Append(Tokens(kPrefix)); !s.ok()) return s;
      Generation result;
      if (absl::Status s = Generate(session->get(), options, &result); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status Branched() {
    auto session = Open(0);
    if (!session.ok()) return session.status();
    if (absl::Status s = (*session)->Append(Tokens(kPrefix)); !s.ok()) return s;
    if (absl::Status s = (*session)->Evaluate(); !s.ok()) return s;
    std::vector<std::unique_ptr<Session>> forks;
    std::vector<Session*> all;
    for (int i = 0; i < kBranches; ++i) {
      auto fork = (*session)->Fork(static_cast<uint64_t>(i));
      if (!fork.ok()) return fork.status();
      all.push_back(fork->get());
      forks.push_back(*std::move(fork));
    }
    GenerateOptions each;
    each.max_tokens = kBranchTokens;
    const std::vector<GenerateOptions> options(all.size(), each);
    std::vector<Generation> results(all.size());
    return GenerateTogether(all, options, results);
  }

  absl::Status MeasureFanOut() {
    std::vector<double> separate, branched;
    for (int turn = 0; turn < kFanOutTurns; ++turn) {
      Clock::time_point begin = Clock::now();
      if (absl::Status s = Separate(); !s.ok()) return s;
      separate.push_back(Seconds(begin));
      begin = Clock::now();
      if (absl::Status s = Branched(); !s.ok()) return s;
      branched.push_back(Seconds(begin));
    }
    const double ratio = Median(branched) / Median(separate);
    std::printf(
        "| %d branches of %lld tokens over %lld, %d turns | %.2f s | %.2f s | %.2f x | %.2f x "
        "| %s |\n",
        kBranches, static_cast<long long>(kBranchTokens), static_cast<long long>(kPrefix),
        kFanOutTurns, Median(separate), Median(branched), ratio, kFanOutBar,
        ratio > kFanOutBar ? "missed" : "held");
    std::fflush(stdout);
    Hold(ratio <= kFanOutBar);
    return absl::OkStatus();
  }

  Engine* const engine_;
  bool held_ = true;
};

constexpr int64_t kTokens = 256;
constexpr int kHostTurns = 9;
constexpr double kBar = 0.03;

struct Turn {
  double token_us = 0;
  double share = 0;  // part of the time outside of plan runs
};

// Generates an answer as `trine generate` does, sampled with the defaults, detokenised and searched
// for stop strings. Measures from the second token on.
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

absl::StatusOr<bool> RunSessionBench(const EngineArguments& arguments) {
  Progress progress("loading");
  EngineOptions options = BranchingOptions(arguments, &progress);
  options.context = 2 * kDepth;
  options.max_sequences = kBranches + 1;
  auto engine = Engine::Load(options);
  progress.Clear();
  if (!engine.ok()) return engine.status();
  SessionBench bench(engine->get());
  if (absl::Status s = bench.Run(); !s.ok()) return s;
  return bench.held();
}

absl::StatusOr<bool> RunHostTimeBench(const EngineArguments& arguments) {
  EngineOptions options = EngineOptionsOf(arguments);
  options.context = 2 * kTokens;
  Progress progress("loading");
  options.progress = [&](double fraction) { return progress.Update(fraction); };
  auto engine = Engine::Load(options);
  progress.Clear();
  if (!engine.ok()) return engine.status();
  std::vector<Turn> turns;
  for (int turn = 0; turn < kHostTurns; ++turn) {
    const auto measured = Measure(engine->get(), static_cast<uint64_t>(turn));
    if (!measured.ok()) return measured.status();
    turns.push_back(*measured);
  }
  std::nth_element(turns.begin(), turns.begin() + kHostTurns / 2, turns.end(),
                   [](const Turn& a, const Turn& b) { return a.share < b.share; });
  const Turn& median = turns[kHostTurns / 2];
  const bool held = median.share <= kBar;
  std::printf(
      "| outside plan runs, %lld tokens, %d turns | %.1f us | %.1f us | %.2f %% | %.0f %% | %s |\n",
      static_cast<long long>(kTokens), kHostTurns, median.token_us, median.share * median.token_us,
      100 * median.share, 100 * kBar, held ? "held" : "missed");
  std::fflush(stdout);
  return held;
}

}  // namespace trine
