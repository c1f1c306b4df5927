// Measures what the framework costs apart from arithmetic: running a plan across the ABI, a
// parallel region, a barrier, detection, and probing a plugin. A tool, not a test.
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "detect/machine.h"
#include "plugins/handles.h"
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
  absl::Status Run() { return plan_.Run(args_); }

 private:
  std::string Build(std::unique_ptr<PluginLibrary> library, uint32_t n_ops) {
    auto backend = Backend::Open(std::move(library), host_);
    if (!backend.ok()) return std::string(backend.status().message());
    auto device = Device::Open(*backend, 0);
    if (!device.ok()) return std::string(device.status().message());
    auto buffer = Buffer::Allocate(*device, 256, TRINE_MEMORY_IO);
    if (!buffer.ok()) return std::string(buffer.status().message());
    buffer_ = std::move(*buffer);

    const trine_slot slot{TRINE_ROLE_IO, 1, 256};
    const trine_tensor tensor{TRINE_DTYPE_F32, 1, 0, 0, {64, 1, 1, 1}, {}, 0, TRINE_LAYOUT_PLAIN};
    const uint32_t in[] = {0, 0}, out[] = {0};
    const std::vector<trine_op> ops(n_ops, trine_op{TRINE_OP_ADD, 2, 1, 0, in, out, nullptr});
    trine_graph graph{};
    graph.struct_size = sizeof(graph);
    graph.numerics = TRINE_NUMERICS_EXACT;
    graph.n_slots = graph.n_tensors = 1;
    graph.n_ops = n_ops;
    graph.slot_stride = sizeof(slot);
    graph.tensor_stride = sizeof(tensor);
    graph.op_stride = sizeof(trine_op);
    graph.slots = &slot;
    graph.tensors = &tensor;
    graph.ops = ops.data();
    const trine_binding binding{0, 0, buffer_.Span(0, 256)};
    trine_plan_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.n_bindings = 1;
    desc.binding_stride = sizeof(binding);
    desc.graph = &graph;
    desc.bindings = &binding;
    auto plan = Plan::Create(*device, desc);
    if (!plan.ok()) return std::string(plan.status().message());
    plan_ = std::move(*plan);
    args_.struct_size = sizeof(args_);
    return "";
  }

  HostServices host_;
  std::string error_ = "the CPU backend was not found beside this program";
  Buffer buffer_;
  Plan plan_;
  trine_run_args args_{};
};

void BM_PlanRun(benchmark::State& state) {
  SmallPlan plan(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)));
  if (!plan.error().empty()) return state.SkipWithError(plan.error().c_str());
  for (auto _ : state) {
    if (!plan.Run().ok()) return state.SkipWithError("the run failed");
  }
}
BENCHMARK(BM_PlanRun)->ArgNames({"workers", "ops"})->ArgsProduct({{1, 2}, {1, 300}})->UseRealTime();

void BM_ParallelRegion(benchmark::State& state) {
  ThreadTeam team({static_cast<uint32_t>(state.range(0)), {}});
  for (auto _ : state) {
    benchmark::DoNotOptimize(team.Run([](void*, uint32_t, uint32_t) {}, nullptr).ok());
  }
}
BENCHMARK(BM_ParallelRegion)->ArgName("workers")->Arg(1)->Arg(2)->UseRealTime();

void BM_Barrier(benchmark::State& state) {
  ThreadTeam team({static_cast<uint32_t>(state.range(0)), {}});
  constexpr int kRounds = 1000;
  for (auto _ : state) {
    (void)team.Run(
        [](void*, uint32_t, uint32_t) {
          for (int i = 0; i < kRounds; ++i) ThreadTeam::Barrier();
        },
        nullptr);
  }
  state.SetItemsProcessed(state.iterations() * kRounds);
}
BENCHMARK(BM_Barrier)->ArgName("workers")->Arg(2)->UseRealTime();

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
    const ProbeResult result = ProbePlugin(path, {program, std::chrono::seconds(10)});
    if (!result.status.ok()) return state.SkipWithError("the CPU backend could not be probed");
  }
}
BENCHMARK(BM_ProbePlugin)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace trine

BENCHMARK_MAIN();
