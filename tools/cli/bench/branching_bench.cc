#include "tools/cli/bench/branching_bench.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/graph/execution_graph.h"
#include "runtime/graph/graph_model.h"
#include "tools/cli/bench/random_model.h"

namespace trine {
namespace {

// Measures elapsed time. If one thread does all the work (`own`), measures that thread's CPU time,
// so that other work on the machine does not count.
class Stopwatch {
 public:
  explicit Stopwatch(bool own) : clock_(own ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) {}
  double Now() const {
    timespec now{};
    clock_gettime(clock_, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

 private:
  clockid_t clock_;
};

constexpr int64_t kContext = 8192;
constexpr int64_t kLayers = 8;   // layers of the model that is made if none was named
constexpr int64_t kDeep = 4096;  // tokens before a regression
constexpr int64_t kChunk = 64;   // tokens of a prompt
constexpr double kReplayBar = 0.01, kCaptureBar = 0.10, kRegressBar = 20e-6;
// A comparison alternates between its sides until both have run for this time, within these numbers
// of turns.
constexpr double kSeconds = 4;
constexpr int kLeastTurns = 21, kMostTurns = 4001;

// Runs a model's passes without taps or observer.
class DirectRunner {
 public:
  explicit DirectRunner(std::shared_ptr<Model> model)
      : model_(std::move(model)),
        pool_(std::make_shared<KvBlockPool>(model_->limits().kv_blocks)),
        blocks_(pool_) {}

  absl::Status Run(std::span<const int32_t> tokens, int64_t position) {
    if (absl::Status s = blocks_.Reserve(position + static_cast<int64_t>(tokens.size())); !s.ok()) {
      return s;
    }
    Batch batch;
    batch.parts.push_back({tokens, position, &blocks_});
    batch.output_rows = {static_cast<int32_t>(tokens.size()) - 1};
    model_->Prepare(batch, 0, &pass_);
    for (size_t stage = 0; stage < model_->stage_count(); ++stage) {
      StageRun run;
      if (absl::Status s = model_->Run(stage, &pass_, /*keep=*/false, &run); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

 private:
  std::shared_ptr<Model> model_;
  std::shared_ptr<KvBlockPool> pool_;
  BlockTable blocks_;
  Pass pass_;
};

struct Comparison {
  double direct = 0, other = 0;  // seconds, medians
  double overhead = 0;
  int turns = 0;
};

// Runs both sides in turns, in alternating order, so that other work on the machine slows both
// down.
absl::StatusOr<Comparison> Compare(const Stopwatch& clock,
                                   const std::function<absl::Status()>& direct,
                                   const std::function<absl::Status()>& other) {
  std::vector<double> a, b;
  const auto time = [&](const std::function<absl::Status()>& f, double* seconds) {
    const double start = clock.Now();
    absl::Status s = f();
    *seconds = clock.Now() - start;
    return s;
  };
  double total = 0;
  for (int turn = -2; turn < kMostTurns; ++turn) {  // the first two are not measured
    if (turn >= kLeastTurns && total > 2 * kSeconds) break;
    double first = 0, second = 0;
    const bool swap = turn % 2 != 0;
    if (absl::Status s = swap ? time(other, &second) : time(direct, &first); !s.ok()) return s;
    if (absl::Status s = swap ? time(direct, &first) : time(other, &second); !s.ok()) return s;
    total += first + second;
    if (turn < 0) continue;
    a.push_back(first);
    b.push_back(second);
  }
  Comparison c{Median(a), Median(b), 0, static_cast<int>(a.size())};
  c.overhead = c.other / c.direct - 1;
  return c;
}

std::vector<int32_t> Tokens(const Model& model, int64_t n) {
  return BranchingTokens(n, model.config().n_vocab);
}

class BranchingBench {
 public:
  explicit BranchingBench(const EngineArguments& arguments) : arguments_(arguments) {}

  absl::Status Run() {
    auto plain = Load(TapLevel::kNone);
    if (!plain.ok()) return plain.status();
    auto layers = Load(TapLevel::kLayers);
    if (!layers.ok()) return layers.status();
    auto graph = ExecutionGraph::Create((*layers)->model);
    if (!graph.ok()) return graph.status();
    const ModelConfig& config = (*plain)->model->config();
    const uint32_t threads = (*plain)->setup.devices->host().table()->worker_count;
    const bool own = threads == 1 && (*plain)->model->Devices() == std::set<std::string>{"cpu"};
    clock_ = Stopwatch(own);
    const bool exact = arguments_.plugins.numerics == TRINE_NUMERICS_EXACT;
    std::printf("%s, %lld layers, width %lld; context %lld; %u %s; %s, %s numerics\n\n",
                config.architecture.c_str(), static_cast<long long>(config.n_layers),
                static_cast<long long>(config.n_embd), static_cast<long long>(kContext), threads,
                own ? "thread, by its own time" : "threads, by the clock",
                absl::StrJoin((*plain)->model->Devices(), " and ").c_str(),
                exact ? "exact" : "fast");
    std::printf("| what | direct | with | overhead | bar | |\n|---|--:|--:|--:|--:|---|\n");
    if (absl::Status s = MeasureReplay(graph->get()); !s.ok()) return s;
    if (absl::Status s = MeasureCapture("layers", kCaptureBar, (*plain)->model, graph->get());
        !s.ok()) {
      return s;
    }
    if (absl::Status s = MeasureRegress(graph->get()); !s.ok()) return s;
    graph->reset();
    layers->reset();
    auto ops = Load(TapLevel::kOps);
    if (!ops.ok()) return ops.status();
    graph = ExecutionGraph::Create((*ops)->model);
    if (!graph.ok()) return graph.status();
    if (absl::Status s = MeasureCapture("ops", 0, (*plain)->model, graph->get()); !s.ok()) {
      return s;
    }
    graph->reset();
    ops->reset();
    plain->reset();
    const auto held = RunSessionBench(arguments_);
    if (held.ok() && !*held) missed_ = true;
    return held.status();
  }
  bool missed() const { return missed_; }

 private:
  absl::StatusOr<std::unique_ptr<GraphModel>> Load(TapLevel level) const {
    Progress progress("loading");
    EngineOptions options = BranchingOptions(arguments_, &progress);
    options.context = kContext;
    options.batch_tokens = kChunk;
    options.taps = level;
    return LoadGraphModel(options);
  }

  void Print(const std::string& what, const Comparison& c, double bar) {
    const bool missed = bar > 0 && c.overhead > bar;
    missed_ = missed_ || missed;
    std::printf("| %s, %d turns | %.1f us | %.1f us | %+.2f %% | %s | %s |\n", what.c_str(),
                c.turns, c.direct * 1e6, c.other * 1e6, c.overhead * 100,
                bar > 0 ? absl::StrFormat("%.0f %%", bar * 100).c_str() : "",
                bar == 0 ? ""
                : missed ? "missed"
                         : "held");
    std::fflush(stdout);
  }

  // Compares a run of a middle layer's plan alone with a run of a window of the graph. The window
  // finds the plan, writes its inputs, because the last pass was another one, and reads its result.
  absl::Status MeasureReplay(ExecutionGraph* graph) {
    const int64_t layer = graph->model().config().n_layers / 2;
    const auto [begin, end] = graph->shape().NodesOfLayer(layer);
    for (const int64_t n : {int64_t{1}, kChunk}) {
      graph->Regress(0);
      const std::vector<int32_t> before = Tokens(graph->model(), kChunk);
      const std::vector<int32_t> tokens = Tokens(graph->model(), n);
      const std::vector<int32_t> row = {0};
      if (absl::Status s = graph->Capture(before, row); !s.ok()) return s;
      for (int i = 0; i < 2; ++i) {
        if (absl::Status s = graph->Capture(tokens, row); !s.ok()) return s;
      }
      size_t t = 1;
      const auto replay = [&] {
        t = 3 - t;
        return graph->ExecuteWindow(graph->NodeAt(t, begin), graph->NodeAt(t, end));
      };
      if (absl::Status s = replay(); !s.ok()) return s;
      const auto plan = graph->PlanOf(begin, end);
      if (!plan.ok()) return plan.status();
      std::vector<int64_t> params(graph->shape().whole().graph.n_params(), 1);
      params[kParamTokens] = n;
      params[kParamKvPositions] = graph->positions();
      const auto compared = Compare(
          clock_, [&] { return (*plan)->segment().Run(params); }, replay);
      if (!compared.ok()) return compared.status();
      Print(absl::StrCat("replay of a layer, ", n, n == 1 ? " token" : " tokens"), *compared,
            kReplayBar);
    }
    return absl::OkStatus();
  }

  // Compares a captured pass with a pass of the model without taps.
  absl::Status MeasureCapture(const std::string& level, double bar, std::shared_ptr<Model> plain,
                              ExecutionGraph* graph) {
    DirectRunner direct(std::move(plain));
    for (const int64_t n : {int64_t{1}, kChunk}) {
      graph->Regress(0);
      const std::vector<int32_t> before = Tokens(graph->model(), kChunk);
      const std::vector<int32_t> tokens = Tokens(graph->model(), n);
      const std::vector<int32_t> row = {static_cast<int32_t>(n - 1)}, any = {0};
      if (absl::Status s = graph->Capture(before, any); !s.ok()) return s;
      if (absl::Status s = direct.Run(before, 0); !s.ok()) return s;
      const auto compared = Compare(
          clock_, [&] { return direct.Run(tokens, kChunk); },
          [&] {
            graph->Regress(1);
            return graph->Capture(tokens, row);
          });
      if (!compared.ok()) return compared.status();
      Print(absl::StrCat("capture of ", level, ", ", n, n == 1 ? " token" : " tokens"), *compared,
            bar);
    }
    return absl::OkStatus();
  }

  // Makes a pass of one token for each position, and regresses by one pass, by half of them and by
  // all. Takes the longest time. The passes are not run, because their contents make no difference.
  absl::Status MeasureRegress(ExecutionGraph* graph) {
    constexpr int kTurns = 41;
    const std::vector<int32_t> token = {1}, row = {0};
    graph->Regress(0);
    double longest = 0;
    for (const size_t to : {size_t{kDeep - 1}, size_t{kDeep / 2}, size_t{0}}) {
      std::vector<double> samples;
      for (int turn = 0; turn < kTurns; ++turn) {
        while (graph->positions() < kDeep) {
          if (absl::Status s = graph->Append(token, row); !s.ok()) return s;
        }
        const double begin = clock_.Now();
        graph->Regress(to);
        samples.push_back(clock_.Now() - begin);
      }
      longest = std::max(longest, Median(samples));
    }
    const bool missed = longest > kRegressBar;
    missed_ = missed_ || missed;
    std::printf("| regress at %lld tokens, %d turns | | %.1f us | | %.0f us | %s |\n",
                static_cast<long long>(kDeep), kTurns, longest * 1e6, kRegressBar * 1e6,
                missed ? "missed" : "held");
    std::fflush(stdout);
    return absl::OkStatus();
  }

  const EngineArguments& arguments_;
  Stopwatch clock_{false};
  bool missed_ = false;
};

}  // namespace

EngineOptions BranchingOptions(const EngineArguments& arguments, Progress* progress) {
  EngineOptions options = EngineOptionsOf(arguments);
  options.log = [log = options.log](uint32_t kind, const std::string& message) {
    if (message.find("was trained with") == std::string::npos) log(kind, message);
  };
  options.progress = [progress](double fraction) { return progress->Update(fraction); };
  return options;
}

std::vector<int32_t> BranchingTokens(int64_t n, int64_t n_vocab) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < n; ++i) {
    tokens.push_back(static_cast<int32_t>((i * 7919 + 13) % n_vocab));
  }
  return tokens;
}

double Median(std::vector<double> samples) {
  const auto middle = samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

int RunBranchingBench(const EngineArguments& arguments) {
  EngineArguments of = arguments;
  std::unique_ptr<RandomModel> random;
  if (of.model_path.empty()) {
    auto made = RandomModel::Make("qwen2.5-0.5b", kLayers, "q4_0", kContext);
    if (!made.ok()) return Complain(made.status());
    random = *std::move(made);
    of.model_path = random->path();
  }
  BranchingBench bench(of);
  if (const absl::Status s = bench.Run(); !s.ok()) return Complain(s);
  // Uses the shipped model if no other is named: its tokens take the least time.
  const auto held = RunHostTimeBench(arguments);
  if (!held.ok()) return Complain(held.status());
  return bench.missed() || !*held ? 1 : 0;
}

}  // namespace trine
