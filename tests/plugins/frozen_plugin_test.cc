// Uses the plugin built against the frozen header like any other plugin, and tests what the
// conformance kit does not.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/handles.h"

namespace trine {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kRows = 8;
constexpr uint64_t kBytes = 16 * kRows * sizeof(float);

class FrozenPluginTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = PluginLibrary::Load(TRINE_FROZEN_PLUGIN);
    ASSERT_TRUE(library.ok()) << library.status();
    EXPECT_EQ((*library)->table().abi_version, 0x10000u);
    auto backend = Backend::Open(std::move(*library), host_);
    ASSERT_TRUE(backend.ok()) << backend.status();
    auto device = Device::Open(*backend, 0);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *device;
  }

  // y = x + constant over kRows rows.
  absl::StatusOr<Plan> AddingPlan(const Buffer& constant, const Buffer& io) {
    const trine_slot slots[] = {{TRINE_ROLE_CONSTANT, 1, kBytes}, {TRINE_ROLE_IO, 1, 2 * kBytes}};
    const auto tensor = [](uint32_t slot, uint64_t offset) {
      return trine_tensor{TRINE_DTYPE_F32,   2,  slot,   0,
                          {16, kRows, 1, 1}, {}, offset, TRINE_LAYOUT_PLAIN};
    };
    const trine_tensor tensors[] = {tensor(0, 0), tensor(1, 0), tensor(1, kBytes)};
    const uint32_t in[] = {1, 0}, out[] = {2};
    const trine_op op{TRINE_OP_ADD, 2, 1, 0, in, out, nullptr};
    trine_graph graph{};
    graph.struct_size = sizeof(graph);
    graph.numerics = TRINE_NUMERICS_EXACT;
    graph.n_slots = 2;
    graph.n_tensors = 3;
    graph.n_ops = 1;
    graph.slot_stride = sizeof(trine_slot);
    graph.tensor_stride = sizeof(trine_tensor);
    graph.op_stride = sizeof(op);
    graph.slots = slots;
    graph.tensors = tensors;
    graph.ops = &op;
    const trine_binding bindings[] = {{0, 0, constant.Span(0, kBytes)},
                                      {1, 0, io.Span(0, 2 * kBytes)}};
    trine_plan_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.n_bindings = 2;
    desc.binding_stride = sizeof(trine_binding);
    desc.graph = &graph;
    desc.bindings = bindings;
    return Plan::Create(device_, desc);
  }

  std::vector<std::string> log_;
  HostServices host_{{2, {}}, [this](uint32_t, const std::string& line) { log_.push_back(line); }};
  std::shared_ptr<Device> device_;
};

TEST_F(FrozenPluginTest, LogsAndTellsWhatItImports) {
  EXPECT_THAT(log_, Contains(HasSubstr("frozen backend is open")));
  EXPECT_EQ(device_->info().imports,
            TRINE_IMPORTS_TRIED | TRINE_IMPORTS_WRITABLE | TRINE_IMPORTS_READ_ONLY);
  EXPECT_TRUE(device_->ListLayouts(trine_graph{}, 0)->empty());  // the plugin offers none
}

TEST_F(FrozenPluginTest, RunsOnImportedMemoryAndTellsTheTime) {
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(64, kBytes),
                                                           &std::free);
  auto* numbers = static_cast<float*>(memory.get());
  std::fill_n(numbers, 16 * kRows, 0.25f);
  trine_import_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.memory = TRINE_MEMORY_WEIGHTS;
  desc.flags = TRINE_IMPORT_READ_ONLY;
  desc.host_ptr = numbers;
  desc.bytes = kBytes;
  auto constant = Buffer::Import(device_, desc);
  ASSERT_TRUE(constant.ok()) << constant.status();
  auto io = Buffer::Allocate(device_, 2 * kBytes, TRINE_MEMORY_IO);
  ASSERT_TRUE(io.ok()) << io.status();
  const std::vector<float> x(16 * kRows, 1.5f);
  ASSERT_TRUE(io->Write(0, x.data(), kBytes).ok());
  auto plan = AddingPlan(*constant, *io);
  ASSERT_TRUE(plan.ok()) << plan.status();

  trine_run_args args{};
  args.struct_size = sizeof(args);
  host_.StartOpTimes();
  ASSERT_TRUE(plan->Run(args).ok());
  const std::vector<OpTime> times = host_.StopOpTimes();
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].name, "add");
  EXPECT_EQ(times[0].calls, 1u);
  std::vector<float> y(16 * kRows);
  ASSERT_TRUE(io->Read(kBytes, y.data(), kBytes).ok());
  EXPECT_THAT(y, Each(1.75f));

  EXPECT_FALSE(AddingPlan(*io, *constant).ok()) << "read-only memory was taken for output";
}

}  // namespace
}  // namespace trine
