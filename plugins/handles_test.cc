// Tests the RAII handles on a real plugin: plans and runs a graph, and frees all in any order.
#include "plugins/handles.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/timeline_handle.h"

namespace trine {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class HandlesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = PluginLibrary::Load(TRINE_CPU_PLUGIN);
    ASSERT_TRUE(library.ok()) << library.status();
    auto backend = Backend::Open(std::move(*library), host_);
    ASSERT_TRUE(backend.ok()) << backend.status();
    auto device = Device::Open(*backend, 0);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *device;  // keeps the library and the backend alive
  }

  // Returns a plan for y = x + x over 16 numbers, x and y in one buffer.
  absl::StatusOr<Plan> DoublingPlan(const Buffer& buffer) {
    const trine_slot slot{TRINE_ROLE_IO, 1, 128};
    const trine_tensor tensors[] = {
        {TRINE_DTYPE_F32, 1, 0, 0, {16, 1, 1, 1}, {}, 0, TRINE_LAYOUT_PLAIN},
        {TRINE_DTYPE_F32, 1, 0, 0, {16, 1, 1, 1}, {}, 64, TRINE_LAYOUT_PLAIN}};
    const uint32_t in[] = {0, 0}, out[] = {1};
    const trine_op op{TRINE_OP_ADD, 2, 1, 0, in, out, nullptr};
    trine_graph graph{};
    graph.struct_size = sizeof(graph);
    graph.numerics = TRINE_NUMERICS_EXACT;
    graph.n_slots = graph.n_ops = 1;
    graph.n_tensors = 2;
    graph.slot_stride = sizeof(slot);
    graph.tensor_stride = sizeof(trine_tensor);
    graph.op_stride = sizeof(op);
    graph.slots = &slot;
    graph.tensors = tensors;
    graph.ops = &op;
    const auto support = device_->QueryOp(graph, 0);
    if (!support.ok()) return support.status();
    EXPECT_EQ(support->support, TRINE_SUPPORT_EXACT);
    EXPECT_EQ(device_->QueryOp(graph, 7).status().code(), absl::StatusCode::kInvalidArgument);
    const auto info = device_->QueryPlan(graph);
    if (!info.ok()) return info.status();
    EXPECT_EQ(info->scratch_bytes, 0u);
    const trine_binding binding{0, 0, buffer.Span(0, 128)};
    trine_plan_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.n_bindings = 1;
    desc.binding_stride = sizeof(binding);
    desc.graph = &graph;
    desc.bindings = &binding;
    return Plan::Create(device_, desc);
  }

  HostServices host_{{2, {}}, nullptr};
  std::shared_ptr<Device> device_;
};

TEST_F(HandlesTest, RunsAPlan) {
  auto buffer = Buffer::Allocate(device_, 128, TRINE_MEMORY_IO);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  const std::vector<float> x(16, 1.5f);
  ASSERT_TRUE(buffer->Write(0, x.data(), 64).ok());
  auto plan = DoublingPlan(*buffer);
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto timeline = TimelineHandle::Create(device_, 4);
  ASSERT_TRUE(timeline.ok());

  const trine_point signal{timeline->handle(), 5};
  trine_run_args args{};
  args.struct_size = sizeof(args);
  args.sync.n_signals = 1;
  args.sync.point_stride = sizeof(signal);
  args.sync.signals = &signal;
  ASSERT_TRUE(plan->Run(args).ok());
  ASSERT_TRUE(timeline->Wait(5, 10'000'000'000).ok());
  EXPECT_EQ(*timeline->Value(), 5u);

  std::vector<float> y(16);
  ASSERT_TRUE(buffer->Read(64, y.data(), 64).ok());
  EXPECT_THAT(y, Each(3.0f));
  EXPECT_NE(buffer->host_ptr(), nullptr);
  device_.reset();  // the buffer, the plan and the timeline still keep it alive
}

// The CPU backend reports the times of its ops while the host asks for them.
TEST_F(HandlesTest, TimesOpsWhileTheHostWantsIt) {
  auto buffer = Buffer::Allocate(device_, 128, TRINE_MEMORY_IO);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  auto plan = DoublingPlan(*buffer);
  ASSERT_TRUE(plan.ok()) << plan.status();
  trine_run_args args{};
  args.struct_size = sizeof(args);
  ASSERT_TRUE(plan->Run(args).ok());
  host_.StartOpTimes();
  ASSERT_TRUE(plan->Run(args).ok());
  ASSERT_TRUE(plan->Run(args).ok());
  const std::vector<OpTime> times = host_.StopOpTimes();
  ASSERT_TRUE(plan->Run(args).ok());
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].name, "add");
  EXPECT_EQ(times[0].calls, 2u);
  EXPECT_TRUE(host_.StopOpTimes().empty());
}

TEST_F(HandlesTest, FailureTravelsAlongTheTimeline) {
  auto timeline = TimelineHandle::Create(device_, 0);
  ASSERT_TRUE(timeline.ok());
  EXPECT_EQ(timeline->Wait(1, 0).code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(timeline->SetFailed(absl::UnavailableError("the device was lost")).ok());
  const absl::Status status = timeline->Wait(1, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the device was lost"));
}

TEST_F(HandlesTest, ErrorsNameThePluginAndTheCall) {
  const auto none = Buffer::Allocate(device_, 0, TRINE_MEMORY_IO);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("cpu: buffer_alloc: "));
  auto buffer = Buffer::Allocate(device_, 64, TRINE_MEMORY_STATE);
  ASSERT_TRUE(buffer.ok());
  char byte = 0;
  EXPECT_EQ(buffer->Read(64, &byte, 1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(buffer->Write(~uint64_t{0}, &byte, 2).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(HandlesTest, ImportsAlignedMemory) {
  alignas(64) float memory[32] = {};
  trine_import_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.memory = TRINE_MEMORY_WEIGHTS;
  desc.host_ptr = memory;
  desc.bytes = sizeof(memory);
  auto imported = Buffer::Import(device_, desc);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const float one = 1.0f;
  ASSERT_TRUE(imported->Write(4, &one, 4).ok());
  EXPECT_EQ(memory[1], 1.0f);
  desc.flags = TRINE_IMPORT_READ_ONLY;
  auto read_only = Buffer::Import(device_, desc);
  ASSERT_TRUE(read_only.ok()) << read_only.status();
  EXPECT_EQ(read_only->Write(0, &one, 4).code(), absl::StatusCode::kInvalidArgument);
  desc.host_ptr = memory + 1;
  EXPECT_FALSE(Buffer::Import(device_, desc).ok());
}

TEST_F(HandlesTest, MovedFromHandlesGiveNothingBackTwice) {
  auto buffer = Buffer::Allocate(device_, 64, TRINE_MEMORY_IO);
  ASSERT_TRUE(buffer.ok());
  Buffer first = std::move(*buffer);
  Buffer second;
  second = std::move(first);
  EXPECT_TRUE(second);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): that is what is tested
}

}  // namespace
}  // namespace trine
