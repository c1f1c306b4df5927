// trine bench: measures how fast a model reads prompts and writes tokens here.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/cli/bench/bench_plan.h"
#include "tools/cli/bench/bench_report.h"
#include "tools/cli/bench/bench_runner.h"
#include "tools/cli/bench/branching_bench.h"
#include "tools/cli/bench/memory_bandwidth.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/terminal/signals.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

const std::map<std::string, BenchFormat> kFormats = {{"md", BenchFormat::kMarkdown},
                                                     {"csv", BenchFormat::kCsv},
                                                     {"json", BenchFormat::kJson},
                                                     {"jsonl", BenchFormat::kJsonLines}};

struct BenchArguments {
  EngineArguments engine;  // shared by all setups
  BenchLists lists;
  int64_t repetitions = 5;
  int64_t delay_s = 0;
  std::string format = "md";
  bool no_warmup = false;
  bool no_bandwidth = false;
  bool ops = false;
  bool branching = false;
};

// Prints a report as results come in. A test can take minutes, so an interrupt at any time
// completes the document that has been printed.
class ReportPrinter {
 public:
  explicit ReportPrinter(BenchReport* report)
      : report_(report), signals_({SIGINT, SIGTERM, SIGHUP}, OnInterrupt) {
    SetEnd();
  }

  void Add(const BenchSubject& subject, const BenchResult& result) {
    ClaimEnd();
    Print(report_->Add(subject, result));
    SetEnd();
  }
  void End() {
    ClaimEnd();
    Print(report_->End());
  }

 private:
  static void Print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  static void OnInterrupt(int) {
    interrupted_ = true;
    if (const std::string* const end = end_.exchange(nullptr)) Finish(*end);
  }
  [[noreturn]] static void Finish(const std::string& end) {
    for (size_t at = 0; at < end.size();) {
      const ssize_t written = write(STDOUT_FILENO, end.data() + at, end.size() - at);
      if (written <= 0) break;
      at += static_cast<size_t>(written);
    }
    _exit(kInterrupted);
  }

  // The thread or handler that takes end_ prints it. A signal that comes while this thread prints
  // has to wait.
  void ClaimEnd() {
    while (end_.exchange(nullptr) == nullptr) pause();  // a handler on another thread has taken it
  }
  void SetEnd() {
    text_ = report_->End();
    end_.store(&text_);
    if (interrupted_ && end_.exchange(nullptr) != nullptr) Finish(text_);
  }

  static inline std::atomic<bool> interrupted_{false};
  static inline std::atomic<const std::string*> end_{nullptr};

  BenchReport* report_;
  std::string text_;
  ScopedSignals signals_;
};

// The bytes that are read, and written, to measure a device's limit: more than caches hold.
constexpr uint64_t kCopiedBytes = uint64_t{1} << 28;

// Loads a setup's model and runs the tests on it.
class BenchSetupRun {
 public:
  BenchSetupRun(const BenchArguments& arguments, const BenchPlan& plan, BenchSetup setup)
      : arguments_(arguments), plan_(plan), setup_(std::move(setup)) {}

  // Prints every result as soon as it is measured.
  absl::Status Run(ReportPrinter* printer) {
    if (absl::Status s = Load(); !s.ok()) return s;
    const EngineOptions options = EngineOptionsOf(Setup());
    BenchRunner runner(engine_.get());
    for (const BenchTest& test : plan_.tests) {
      std::this_thread::sleep_for(std::chrono::seconds(arguments_.delay_s));
      auto result = RunTest(&runner, test);
      if (!result.ok()) return result.status();
      // A device that was lost meanwhile no longer takes part.
      printer->Add(DescribeSubject(*engine_, options), *result);
    }
    return absl::OkStatus();
  }

 private:
  // Returns the arguments of the command, with those of this setup.
  EngineArguments Setup() const {
    EngineArguments a = arguments_.engine;
    a.context = plan_.Context();
    a.threads = setup_.threads;
    a.batch = setup_.batch;
    a.ubatch = setup_.ubatch;
    a.kv_type_k = setup_.type_k;
    a.kv_type_v = setup_.type_v;
    a.placement.split = setup_.split;
    a.placement.dispatch = setup_.dispatch_mode;
    return a;
  }

  absl::Status Load() {
    const EngineArguments a = Setup();
    const Clock::time_point begin = Clock::now();
    auto engine = LoadEngine(a);
    // The user has not asked for this context: the tests have.
    if (absl::IsResourceExhausted(engine.status())) {
      return About(absl::StrCat("the longest test takes a context of ", a.context),
                   engine.status());
    }
    if (!engine.ok()) return engine.status();
    load_ns_ = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
    engine_ = *std::move(engine);
    setup_.threads = engine_->threads();
    const int64_t pass = engine_->model()->limits().max_tokens;
    if (setup_.ubatch == 0) setup_.ubatch = pass;
    if (setup_.batch == 0) setup_.batch = std::max(pass, setup_.ubatch);
    return absl::OkStatus();
  }

  absl::StatusOr<BenchResult> RunTest(BenchRunner* runner, const BenchTest& test) {
    BenchResult result;
    result.setup = setup_;
    result.test = test;
    result.load_ns = load_ns_;
    auto reads = ReadsOf(*engine_, test);
    if (!reads.ok()) return reads.status();
    result.reads = *std::move(reads);
    if (result.reads && !arguments_.no_bandwidth) {
      if (absl::Status s = MeasureMachine(&*result.reads); !s.ok()) return s;
    }
    if (!arguments_.no_warmup) {
      if (absl::Status s = runner->WarmUp(test); !s.ok()) return s;
    }
    result.time = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
    const BusyWatch watch(*engine_);
    const SlotWatch slots(*engine_);
    for (int64_t i = 0; i < arguments_.repetitions; ++i) {
      const auto ns = runner->Run(test);
      if (!ns.ok()) return ns.status();
      result.samples_ns.push_back(*ns);
    }
    result.busy = watch.Shares();
    result.slots = slots.Use();
    if (arguments_.ops) {
      auto ops = runner->RunWithOps(test);
      if (!ops.ok()) return ops.status();
      result.ops = *std::move(ops);
    }
    return result;
  }

  // Returns whether one device has all layers with all of their matrices. Others may help it.
  bool HasOneDevice() const {
    const std::shared_ptr<const Model> model = engine_->model();
    std::map<size_t, std::string> helpers;  // by stage
    for (const RouteInfo& route : model->routes()) helpers[route.stage] = route.helper;
    std::set<std::string> devices;
    for (size_t stage = 0; stage < model->stage_count(); ++stage) {
      for (const std::string& device : model->StageDevices(stage)) {
        if (device != helpers[stage]) devices.insert(device);
      }
    }
    return devices.size() == 1;
  }

  // Measures once per setup, because its tests read mostly the weights. Measures reads of the CPU,
  // or copies of another device that has all layers. Several devices have no common limit.
  absl::Status MeasureMachine(BenchReads* reads) {
    if (!HasOneDevice()) return absl::OkStatus();
    const std::vector<SegmentPlace> places = engine_->model()->places();
    const std::string& device = places.front().device_name;
    if (machine_.bytes == 0) {
      const auto bytes = static_cast<uint64_t>(reads->weight_bytes);
      const auto machine = device == "cpu"
                               ? MeasureReadBandwidth(static_cast<uint32_t>(setup_.threads), bytes)
                               : MeasureCopyBandwidth(places.front().device, kCopiedBytes);
      // A device that is full, or can't copy exactly, has no known limit.
      if (!machine.ok() && device != "cpu") return absl::OkStatus();
      if (!machine.ok()) return machine.status();
      machine_ = *machine;
    }
    reads->machine_bytes_per_second = machine_.bytes_per_second;
    reads->machine_bytes = machine_.bytes;
    return absl::OkStatus();
  }

  const BenchArguments& arguments_;
  const BenchPlan& plan_;
  BenchSetup setup_;
  std::unique_ptr<Engine> engine_;
  uint64_t load_ns_ = 0;
  ReadBandwidth machine_;
};

int BenchBranching(const BenchArguments& arguments, const BenchPlan& plan) {
  if (plan.setups.size() != 1) {
    return ComplainOfArguments(
        absl::InvalidArgumentError("--branching takes one number of threads, and no lists"));
  }
  EngineArguments engine = arguments.engine;
  if (engine.placement.mode == SplitMode::kRow || !engine.placement.overrides.empty()) {
    return ComplainOfArguments(absl::InvalidArgumentError(
        "--branching captures passes, which devices with whole layers allow: it goes with neither "
        "--split-mode row nor --override-tensor"));
  }
  engine.threads = plan.setups[0].threads;
  engine.placement.split = plan.setups[0].split;
  return RunBranchingBench(engine);
}

int Bench(const BenchArguments& arguments) {
  const auto plan = MakeBenchPlan(arguments.lists, arguments.engine.placement);
  if (!plan.ok()) return ComplainOfArguments(plan.status());
  if (arguments.branching) return BenchBranching(arguments, *plan);
  BenchReport report(kFormats.at(arguments.format), *plan);
  ReportPrinter printer(&report);
  absl::Status status;
  for (const BenchSetup& setup : plan->setups) {
    status = BenchSetupRun(arguments, *plan, setup).Run(&printer);
    if (!status.ok()) break;
  }
  // Prints the end even after a failure: JSON without its end can't be read.
  printer.End();
  return Complain(status);
}

// Adds an option that is a comma-separated list and may be repeated.
Option AddList(Command command, const std::string& names, const std::string& help,
               std::vector<std::string>* list) {
  return command.AddOption(names, *list, help)
      .OneValueEach()
      .Check(NotEmpty)
      .ValueName("LIST")
      .DefaultText(absl::StrJoin(*list, ","));
}

}  // namespace

void AddBenchCommand(Command app, Run* run) {
  auto [command, a] = NewCommand<BenchArguments>(
      app, run, Bench, "bench",
      "Measure how fast a model reads prompts and writes tokens, and how much of the machine's "
      "read bandwidth that takes. Lists such as 1,2 or 1-8*2 run every combination. With "
      "--hot-experts or --expert-stats it also says which part of the chosen experts was in slots, "
      "and how many experts were moved there");
  command
      .AddOption("-m,--model", a->engine.model_path,
                 "GGUF file (default: the model that comes with trine)")
      .Check(NotEmpty);
  AddList(command, "-p,--n-prompt", "Tokens of a prompt, read in passes; 0: no such test",
          &a->lists.n_prompt);
  AddList(command, "-n,--n-gen", "Tokens written one by one; 0: no such test", &a->lists.n_gen);
  command
      .AddOption("--pg", a->lists.prompt_and_gen,
                 "A prompt and what is written behind it in one test, as 512,128; may be "
                 "repeated; also -pg")
      .OneValueEach()
      .ValueName("LENGTHS")
      .Check(NotEmpty);
  AddList(command, "-d,--n-depth", "Tokens that are there before a test begins", &a->lists.n_depth);
  AddList(command, "-t,--threads", "CPU threads (default: one per core)", &a->lists.threads);
  AddTeamOption(command, &a->engine.team);
  AddList(command, "-b,--batch-size", "Most tokens of a prompt read in one go", &a->lists.batch)
      .DefaultText("as many as a pass may have");
  AddList(command, "--ubatch-size", "Most tokens in one pass; also -ub", &a->lists.ubatch)
      .DefaultText(kUbatchDefault);
  AddList(command, "--cache-type-k", "Type of cached keys: f16, f32, bf16, q8_0; also -ctk",
          &a->lists.type_k);
  AddList(command, "--cache-type-v", "Type of cached values; also -ctv", &a->lists.type_v);
  command
      .AddOption("--tensor-split", a->lists.tensor_split,
                 "Layers per tier or device, as in generate; may be repeated; also -ts")
      .OneValueEach()
      .Check(NotEmpty);
  AddDeviceOption(command, &a->engine.placement);
  AddMemoryOption(command, &a->engine.placement);
  AddSplitModeOptions(command, &a->engine.placement);
  a->engine.expert_stats_read_only = true;  // tokens are random, so their choices say nothing
  AddExpertStatsOption(command, &a->engine);
  AddList(command, "--dispatch",
          "Which passes may leave the devices of their layers, as in generate: auto, prompts, off, "
          "or from how many tokens on",
          &a->lists.dispatch)
      .DefaultText("auto where the planner places layers, else prompts");
  command.AddOption("-r,--repetitions", a->repetitions, "Times each test is run")
      .Range(1, 100000)
      .ShowDefault();
  command.AddOption("-o,--output", a->format, "md, csv, json or jsonl")
      .OneOf({"md", "csv", "json", "jsonl"})
      .ValueName("FORMAT")
      .ShowDefault();
  command.AddOption("--delay", a->delay_s, "Seconds to wait before each test")
      .Range(0, 86400)
      .ShowDefault();
  command.AddFlag("--no-warmup", a->no_warmup, "No run of each test before those that count");
  command.AddFlag("--no-bandwidth", a->no_bandwidth,
                  "Don't measure the limit: how fast the machine reads, or the device copies");
  command.AddFlag("--ops", a->ops,
                  "One more repetition with the times of single ops, and of what is around them "
                  "(md, json, jsonl)");
  command.AddFlag("--branching", a->branching,
                  "In place of the tests: what capture, replay, going back and the host's own work "
                  "cost, beside the bars they are held to; exit code 1 when one is missed. "
                  "Without -m, of a model of random weights with a context of 8192");
  AddPluginOptions(command, &a->engine.plugins);
  command.AddFlagOff("--no-mmap", a->engine.use_mmap,
                     "Read the file into memory instead of mapping it");
}

}  // namespace trine
