#include "tools/cli/session_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/generate.h"
#include "runtime/session.h"
#include "tools/cli/progress.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kDeep = 4096;  // tokens that there are when one goes back
constexpr int kTurns = 60;
constexpr double kRegressBar = 20e-6;
// Branches over a common beginning, against as many requests that read it each.
constexpr int64_t kPrefix = 1000, kBranchTokens = 64;
constexpr int kBranches = 8, kFanOutTurns = 3;
constexpr double kFanOutBar = 1.0 / 3;

double Seconds(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double Median(std::vector<double> samples) {
  std::nth_element(samples.begin(), samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2),
                   samples.end());
  return samples[samples.size() / 2];
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
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < n; ++i) {
      tokens.push_back(static_cast<int32_t>((i * 7919 + 13) % engine_->config().n_vocab));
    }
    return tokens;
  }
  void Hold(bool held) { held_ = held_ && held; }

  static void PrintTime(const char* what, const std::vector<double>& samples, double bar) {
    const double median = Median(samples);
    std::printf("| %s at %lld tokens, %zu turns | | %.2f us (most %.2f us) | | ", what,
                static_cast<long long>(kDeep), samples.size(), median * 1e6,
                *std::max_element(samples.begin(), samples.end()) * 1e6);
    if (bar == 0) std::printf("| |\n");
    if (bar != 0) std::printf("%.0f us | %s |\n", bar * 1e6, median > bar ? "missed" : "held");
    std::fflush(stdout);
  }

  // A token is read between a checkpoint and the way back, so that there is something to undo.
  absl::Status MeasurePoints() {
    auto session = Open(1);
    if (!session.ok()) return session.status();
    if (absl::Status s = (*session)->Append(Tokens(kDeep)); !s.ok()) return s;
    if (absl::Status s = (*session)->Evaluate(); !s.ok()) return s;
    std::vector<double> checkpoint, regress, fork;
    for (int turn = 0; turn < kTurns; ++turn) {
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
    PrintTime("regress of a session", regress, kRegressBar);
    PrintTime("fork of a session", fork, 0);
    Hold(Median(regress) <= kRegressBar);
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

}  // namespace

absl::StatusOr<bool> RunSessionBench(const EngineArguments& arguments) {
  EngineOptions options = EngineOptionsOf(arguments);
  options.context = 2 * kDeep;
  options.max_sequences = kBranches + 1;
  Progress progress("loading");
  options.progress = [&](double fraction) {
    progress.Update(fraction);
    return true;
  };
  const LogSink log = options.log;
  options.log = [log](uint32_t kind, const std::string& message) {
    if (message.find("was trained with") == std::string::npos) log(kind, message);
  };
  auto engine = Engine::Load(options);
  progress.Clear();
  if (!engine.ok()) return engine.status();
  SessionBench bench(engine->get());
  if (absl::Status s = bench.Run(); !s.ok()) return s;
  return bench.held();
}

}  // namespace trine
