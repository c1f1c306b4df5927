// Measures what the framework costs apart from arithmetic: running a plan across the ABI, a
// parallel region, a barrier, detection, and probing a plugin. A tool, not a test.
#include <memory>
#include <string>
#include <utility>

#include "benchmark/benchmark.h"
#include "detect/machine.h"
#include "dispatch/exec/segment.h"
#include "plugins/callback_team.h"
#include "plugins/handles.h"
#include "plugins/openmp_team.h"
#include "plugins/own_team.h"
#include "plugins/probe.h"
#include "plugins/search_path.h"

namespace trine {
namespace {

// A chain of `ops` additions of 64 numbers on the CPU backend: next to no arithmetic.
class SmallPlan {
 public:
  explicit SmallPlan(uint32_t workers, uint32_t ops) : host_({workers, {}}, nullptr) {
    for (const Candidate& candidate : FindPlugins({}).candidates) {
      if (candidate.path.find("backend-cpu") == std::string::npos) continue;
      auto library = PluginLibrary::Load(candidate.path);
      if (library.ok()) error_ = Build(std::move(*library), ops);
      break;
    }
  }
  const std::string& error() const { return error_; }
  absl::Status Run() { return segment_->Run({}); }

 private:
  std::string Build(std::unique_ptr<PluginLibrary> library, uint32_t n_ops) {
    auto backend = Backend::Open(std::move(library), host_);
    if (!backend.ok()) return std::string(backend.status().message());
    auto device = Device::Open(*backend, 0);
    if (!device.ok()) return std::string(device.status().message());
    OpGraph graph;
    const TensorId x = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64});
    for (uint32_t i = 0; i < n_ops; ++i) graph.AddOp(TRINE_OP_ADD, {x, x}, {x});
    graph.Finish();
    auto segment = Segment::Create(*device, std::move(graph), {});
    if (!segment.ok()) return std::string(segment.status().message());
    segment_ = *std::move(segment);
    return "";
  }

  HostServices host_;
  std::string error_ = "the CPU backend was not found beside this program";
  std::unique_ptr<Segment> segment_;
};

void BM_PlanRun(benchmark::State& state) {
  SmallPlan plan(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)));
  if (!plan.error().empty()) return state.SkipWithError(plan.error().c_str());
  for (auto _ : state) {
    if (!plan.Run().ok()) return state.SkipWithError("the run failed");
  }
}
BENCHMARK(BM_PlanRun)->ArgNames({"workers", "ops"})->ArgsProduct({{1, 2}, {1, 300}})->UseRealTime();

using TeamOrWhyNot = absl::StatusOr<std::shared_ptr<ThreadTeam>>;

TeamOrWhyNot OwnThreads(uint32_t workers) {
  return std::make_shared<OwnTeam>(ThreadTeamOptions{workers, {}});
}

// Lends the threads of another team, whose own cost is that of OwnThreads.
TeamOrWhyNot LentThreads(uint32_t workers) {
  struct Call {
    HostThreads::Work work;
    void* arg;
  };
  HostThreads threads;
  threads.workers = workers;
  threads.parallel_run = [pool = std::make_shared<OwnTeam>(ThreadTeamOptions{workers, {}})](
                             HostThreads::Work work, void* arg, uint32_t) {
    Call call{work, arg};
    const auto run = [](void* given, uint32_t worker, uint32_t) {
      const Call& c = *static_cast<Call*>(given);
      c.work(c.arg, worker);
    };
    return pool->Run(run, &call).ok() ? 0 : 1;
  };
  return CallbackTeam::Create(threads, 0);
}

void BM_ParallelRegion(benchmark::State& state, TeamOrWhyNot (*make)(uint32_t)) {
  const TeamOrWhyNot team = make(static_cast<uint32_t>(state.range(0)));
  if (!team.ok()) return state.SkipWithError(std::string(team.status().message()).c_str());
  for (auto _ : state) {
    benchmark::DoNotOptimize((*team)->Run([](void*, uint32_t, uint32_t) {}, nullptr).ok());
  }
}

void BM_Barrier(benchmark::State& state, TeamOrWhyNot (*make)(uint32_t)) {
  const TeamOrWhyNot team = make(static_cast<uint32_t>(state.range(0)));
  if (!team.ok()) return state.SkipWithError(std::string(team.status().message()).c_str());
  constexpr int kRounds = 1000;
  for (auto _ : state) {
    (void)(*team)->Run(
        [](void*, uint32_t, uint32_t) {
          for (int i = 0; i < kRounds; ++i) ThreadTeam::Barrier();
        },
        nullptr);
  }
  state.SetItemsProcessed(state.iterations() * kRounds);
}

#define TRINE_TEAM_BENCHMARKS(name, make)          \
  BENCHMARK_CAPTURE(BM_ParallelRegion, name, make) \
      ->ArgName("workers")                         \
      ->Arg(1)                                     \
      ->Arg(2)                                     \
      ->UseRealTime();                             \
  BENCHMARK_CAPTURE(BM_Barrier, name, make)->ArgName("workers")->Arg(2)->UseRealTime()
TRINE_TEAM_BENCHMARKS(own, OwnThreads);
TRINE_TEAM_BENCHMARKS(openmp, OpenMpTeam::Create);
TRINE_TEAM_BENCHMARKS(host, LentThreads);

void BM_DetectMachine(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(detect::DetectMachine().tier);
}
BENCHMARK(BM_DetectMachine)->Unit(benchmark::kMillisecond);

void BM_DetectProcessor(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(detect::DetectProcessor().simd_level);
}
BENCHMARK(BM_DetectProcessor)->Unit(benchmark::kMillisecond);

void BM_ProbePlugin(benchmark::State& state) {
  const std::string program = FindProbeProgram(nullptr);
  std::string path;
  for (const Candidate& candidate : FindPlugins({}).candidates) {
    if (candidate.path.find("backend-cpu") != std::string::npos) path = candidate.path;
  }
  for (auto _ : state) {
    const ProbeResult result = ProbePlugin(path, {program, std::chrono::seconds(10), ""});
    if (!result.status.ok()) return state.SkipWithError("the CPU backend could not be probed");
  }
}
BENCHMARK(BM_ProbePlugin)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace trine

BENCHMARK_MAIN();
