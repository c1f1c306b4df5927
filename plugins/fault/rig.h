// Helpers of the wrapper's tests: a real plugin behind an injector, and a small plan on it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "plugins/fault/injector.h"
#include "plugins/handles.h"

namespace trine::fault {

// y = x + x over rows of 16 numbers, one row per token; y has two alternates.
struct Doubling {
  static constexpr int64_t kMaxTokens = 4;
  static constexpr uint64_t kBytes = 64 * kMaxTokens;

  trine_slot slots[2] = {{TRINE_ROLE_IO, 1, kBytes}, {TRINE_ROLE_IO, 2, kBytes}};
  trine_tensor tensors[2] = {{TRINE_DTYPE_F32, 2, 0, 0, {16, -1, 1, 1}, {}, 0, TRINE_LAYOUT_PLAIN},
                             {TRINE_DTYPE_F32, 2, 1, 0, {16, -1, 1, 1}, {}, 0, TRINE_LAYOUT_PLAIN}};
  trine_param params[2] = {{TRINE_PARAM_TOKENS, 0, 1, kMaxTokens},
                           {TRINE_PARAM_SEQUENCES, 0, 1, kMaxTokens}};
  uint32_t in[2] = {0, 0}, out[1] = {1};
  trine_op op{TRINE_OP_ADD, 2, 1, 0, in, out, nullptr};
  trine_graph graph{};

  Doubling() {
    graph.struct_size = sizeof(graph);
    graph.numerics = TRINE_NUMERICS_EXACT;
    graph.n_slots = graph.n_tensors = graph.n_params = 2;
    graph.n_ops = 1;
    graph.slot_stride = sizeof(trine_slot);
    graph.tensor_stride = sizeof(trine_tensor);
    graph.op_stride = sizeof(trine_op);
    graph.param_stride = sizeof(trine_param);
    graph.slots = slots;
    graph.tensors = tensors;
    graph.ops = &op;
    graph.params = params;
  }
  Doubling(const Doubling&) = delete;
};

// The plan with its memory: buffers[0] is x, buffers[1] and [2] are y.
struct DoublingPlan {
  Doubling doubling;
  std::vector<Buffer> buffers;
  Plan plan;
};

// Opens a plugin behind an injector with the given faults, and keeps the host's log.
class Rig {
 public:
  Rig(const std::string& plugin, const std::string& faults, uint32_t workers = 2)
      : host_(ThreadTeamOptions{workers, {}},
              [this](uint32_t, const std::string& line) { Note(line); }) {
    auto spec = FaultSpec::Parse(faults);
    EXPECT_TRUE(spec.ok()) << spec.status();
    injector_ = std::make_unique<Injector>(*std::move(spec));
    auto library = PluginLibrary::Load(plugin);
    EXPECT_TRUE(library.ok()) << library.status();
    auto backend = Backend::Open(
        *std::move(library), host_, "",
        [this](const trine_plugin& table, const trine_host* host, trine_backend* handle) {
          return injector_->Wrap(table, host, handle, {{"cpu", "CPU"}});
        });
    EXPECT_TRUE(backend.ok()) << backend.status();
    backend_ = *std::move(backend);
  }
  ~Rig() {
    backend_.reset();
    injector_.reset();
  }

  Injector& injector() { return *injector_; }
  HostServices& host() { return host_; }
  absl::StatusOr<std::shared_ptr<Device>> Open() { return Device::Open(backend_, 0); }
  std::shared_ptr<Device> MustOpen() {
    auto device = Open();
    EXPECT_TRUE(device.ok()) << device.status();
    return device.ok() ? *std::move(device) : nullptr;
  }
  std::string log() {
    const std::lock_guard<std::mutex> lock(log_mutex_);
    return log_;
  }

 private:
  void Note(const std::string& line) {
    const std::lock_guard<std::mutex> lock(log_mutex_);
    log_ += line + "\n";
  }

  std::mutex log_mutex_;
  std::string log_;
  HostServices host_;
  std::unique_ptr<Injector> injector_;
  std::shared_ptr<Backend> backend_;
};

// Makes a plan on three buffers of the device. Returns the status of plan_create when that fails.
inline absl::StatusOr<Plan> PlanOn(const std::shared_ptr<Device>& device, const Doubling& doubling,
                                   const std::vector<Buffer>& buffers) {
  const trine_binding bindings[] = {{0, 0, buffers[0].Span(0, Doubling::kBytes)},
                                    {1, 0, buffers[1].Span(0, Doubling::kBytes)},
                                    {1, 1, buffers[2].Span(0, Doubling::kBytes)}};
  trine_plan_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.n_bindings = 3;
  desc.binding_stride = sizeof(trine_binding);
  desc.graph = &doubling.graph;
  desc.bindings = bindings;
  return Plan::Create(device, desc);
}

inline std::unique_ptr<DoublingPlan> MustPlan(const std::shared_ptr<Device>& device) {
  auto made = std::make_unique<DoublingPlan>();
  const std::vector<float> x(16 * Doubling::kMaxTokens, 1.5f);
  for (int i = 0; i < 3; ++i) {
    auto buffer = Buffer::Allocate(device, Doubling::kBytes, TRINE_MEMORY_IO);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    if (!buffer.ok()) return nullptr;
    EXPECT_TRUE(buffer->Write(0, x.data(), Doubling::kBytes).ok());
    made->buffers.push_back(*std::move(buffer));
  }
  auto plan = PlanOn(device, made->doubling, made->buffers);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return nullptr;
  made->plan = *std::move(plan);
  return made;
}

struct RunOptions {
  int64_t tokens = 1, sequences = 1;
  uint32_t alternate = 0;
  const trine_point* wait = nullptr;
  const trine_point* signal = nullptr;
};

inline absl::Status RunPlan(const DoublingPlan& made, const RunOptions& options = {}) {
  const int64_t params[] = {options.tokens, options.sequences};
  const uint32_t alternates[] = {0, options.alternate};
  trine_run_args args{};
  args.struct_size = sizeof(args);
  args.n_params = args.n_alternates = 2;
  args.params = params;
  args.alternates = alternates;
  args.sync.point_stride = sizeof(trine_point);
  args.sync.n_waits = options.wait != nullptr ? 1 : 0;
  args.sync.waits = options.wait;
  args.sync.n_signals = options.signal != nullptr ? 1 : 0;
  args.sync.signals = options.signal;
  return made.plan.Run(args);
}

inline std::vector<float> Values(const DoublingPlan& made, size_t buffer) {
  std::vector<float> values(16 * Doubling::kMaxTokens);
  const absl::Status status = made.buffers[buffer].Read(0, values.data(), Doubling::kBytes);
  EXPECT_TRUE(status.ok()) << status;
  return values;
}

}  // namespace trine::fault
