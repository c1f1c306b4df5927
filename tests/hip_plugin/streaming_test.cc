// Tests weights that stay in the host's memory: the same bits as weights on the device, two stages
// in turns, and no more device memory than those.
#include <set>

#include "tests/hip_plugin/plugin_fixture.h"

namespace trine::hip {
namespace {

using emulator::Call;
using emulator::Done;
using emulator::Pace;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr uint64_t kStage = 64 << 10;
const char kOptions[] = "stage=65536";

// Makes small floats, so that no sum of them is far from any other.
Bytes Floats(size_t n, uint32_t seed) {
  Bytes bytes(4 * n);
  for (size_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float value = static_cast<float>(static_cast<int>(seed >> 20) - 2048) / 1024.0f;
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  return bytes;
}

// A block of a model: norm, two products and their glu, a third product, the sum; then experts. The
// scales of all weights are finite f16 numbers.
class HipStreamingTest : public PluginFixture {
 protected:
  static constexpr int64_t kWide = 512, kHidden = 768, kExperts = 4;

  HipStreamingTest() {
    const int64_t m = b_.Param(1, 24);
    x_ = Input({kWide, m}, 1);
    const uint32_t norm = Constant(TRINE_DTYPE_F32, {kWide}, 2);
    gate_ = Constant(TRINE_DTYPE_Q4_0, {kWide, kHidden}, 3);
    const uint32_t up = Constant(TRINE_DTYPE_Q8_0, {kWide, kHidden}, 4);
    const uint32_t bias = Constant(TRINE_DTYPE_F32, {kHidden}, 5);
    const uint32_t down = Constant(TRINE_DTYPE_F32, {kHidden, kWide}, 6);
    const uint32_t n = Temp({kWide, m}), g = Temp({kHidden, m}), u = Temp({kHidden, m}),
                   h = Temp({kHidden, m}), d = Temp({kWide, m});
    b_.Op(TRINE_OP_RMS_NORM, {x_, norm}, {n}, trine_norm_attr{0, 1e-5f});
    b_.Op(TRINE_OP_MATMUL, {gate_, n}, {g});
    b_.Op(TRINE_OP_MATMUL, {up, n, bias}, {u});
    b_.Op(TRINE_OP_GLU, {g, u}, {h}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0});
    b_.Op(TRINE_OP_MATMUL, {down, h}, {d});
    y_ = Output({kWide, m});
    b_.Op(TRINE_OP_ADD, {x_, d}, {y_});
    // Windows of experts are rows of all experts.
    const uint32_t router = Constant(TRINE_DTYPE_F32, {kWide, kExperts}, 7);
    const uint32_t experts = Constant(TRINE_DTYPE_Q8_0, {kWide, 96, kExperts}, 8);
    const uint32_t biases = Constant(TRINE_DTYPE_F32, {96, kExperts}, 9);
    const uint32_t logits = Temp({kExperts, m}), weights = Temp({2, m});
    const uint32_t ids = b_.Tensor(TRINE_DTYPE_I32, {2, m}, TRINE_ROLE_TEMP, 4 * 2 * 24);
    b_.Op(TRINE_OP_MATMUL, {router, n}, {logits});
    b_.Op(TRINE_OP_MOE_ROUTE, {logits}, {ids, weights},
          trine_moe_route_attr{0, TRINE_MOE_SOFTMAX, TRINE_MOE_NORMALIZE, 1.0f});
    b_.tensors.push_back(b_.tensors[n]);
    b_.tensors.back().rank = 3;
    b_.tensors.back().dims[1] = 1;
    b_.tensors.back().dims[2] = m;
    const auto n3 = static_cast<uint32_t>(b_.tensors.size() - 1);
    z_ = b_.Tensor(TRINE_DTYPE_F32, {96, 2, m}, TRINE_ROLE_IO, 4 * 96 * 2 * 24);
    b_.Op(TRINE_OP_MOE_MATMUL, {experts, n3, ids, biases}, {z_});
  }

  uint32_t Constant(uint32_t dtype, std::vector<int64_t> dims, uint32_t seed) {
    int64_t rows = 1;
    for (size_t i = 1; i < dims.size(); ++i) rows *= dims[i];
    const auto bytes = static_cast<uint64_t>(sdk::ValueBytes(dtype, dims[0]) * rows);
    const int64_t values = dims[0] * rows;
    const uint32_t t = b_.Tensor(dtype, std::move(dims), TRINE_ROLE_CONSTANT, bytes);
    Bytes content =
        dtype == TRINE_DTYPE_F32 ? Floats(static_cast<size_t>(values), seed) : Noise(bytes, seed);
    // The scale is first in a block of these types: about 2^-10.
    const size_t block = sdk::FindDtype(dtype)->block_bytes;
    for (size_t i = 0; dtype != TRINE_DTYPE_F32 && i < bytes; i += block) {
      content[i + 1] = static_cast<std::byte>(0x14);
    }
    contents_[b_.tensors[t].slot] = std::move(content);
    constants_ += bytes;
    return t;
  }
  uint32_t Temp(std::vector<int64_t> dims) {
    const auto bytes = static_cast<uint64_t>(4 * dims[0] * 24);
    return b_.Tensor(TRINE_DTYPE_F32, std::move(dims), TRINE_ROLE_TEMP, bytes);
  }
  uint32_t Output(std::vector<int64_t> dims) {
    const auto bytes = static_cast<uint64_t>(4 * dims[0] * 24);
    return b_.Tensor(TRINE_DTYPE_F32, std::move(dims), TRINE_ROLE_IO, bytes);
  }
  uint32_t Input(std::vector<int64_t> dims, uint32_t seed) {
    const uint32_t t = Output(std::move(dims));
    contents_[b_.tensors[t].slot] = Floats(kWide * 24, seed);
    return t;
  }

  // Returns the bytes of both outputs after a run of m columns.
  Bytes Outputs(BoundPlan& plan, int64_t m) const {
    Bytes y = plan.Read(b_.tensors[y_].slot), z = plan.Read(b_.tensors[z_].slot);
    y.resize(static_cast<size_t>(4 * kWide * m));
    z.resize(static_cast<size_t>(4 * 96 * 2 * m));
    y.insert(y.end(), z.begin(), z.end());
    return y;
  }
  Bytes Resident(int64_t m) {
    const auto backend = Backend("");
    const auto device = Device(backend.get());
    BoundPlan plan(device.get(), b_, contents_, Keep::kDevice);
    EXPECT_EQ(plan.Run({m}), TRINE_OK) << plan.error.message;
    return Outputs(plan, m);
  }

  sdk::GraphBuilder b_;
  std::map<uint32_t, Bytes> contents_;  // by slot
  uint64_t constants_ = 0;
  uint32_t x_ = 0, y_ = 0, z_ = 0, gate_ = 0;
};

TEST_F(HipStreamingTest, HasTheBitsOfResidentWeights) {
  for (const int64_t m : {1, 3, 24}) {
    const Bytes expected = Resident(m);
    for (const char* pace : {"at-once", "oldest", "newest", "random", "newest;register-files=1"}) {
      const auto backend = Backend(std::string(kOptions) + ";pace=" + pace);
      const auto device = Device(backend.get());
      for (const Keep keep : kHostKeeps) {
        BoundPlan plan(device.get(), b_, contents_, keep);
        ASSERT_EQ(plan.status, TRINE_OK) << plan.error.message;
        for (int round = 0; round < 2; ++round) {
          ASSERT_EQ(plan.Run({m}), TRINE_OK) << plan.error.message;
          EXPECT_EQ(Outputs(plan, m), expected)
              << m << " " << pace << " " << static_cast<int>(keep);
        }
      }
    }
  }
}

TEST_F(HipStreamingTest, NoTuningChangesABit) {
  const Bytes expected = Resident(5);
  for (const char* tuning :
       {"fuse=0", "graphs=0", "unit=mma;wave=64", "stage=1", "stage=3000", "stage=100000000"}) {
    const auto backend = Backend(std::string("pace=newest;stage=65536;") + tuning);
    const auto device = Device(backend.get());
    BoundPlan plan(device.get(), b_, contents_, Keep::kPinned);
    ASSERT_EQ(plan.Run({5}), TRINE_OK) << plan.error.message;
    EXPECT_EQ(Outputs(plan, 5), expected) << tuning;
  }
}

TEST_F(HipStreamingTest, PackedWeightsToo) {
  const auto backend = Backend("stage=65536;pace=newest");
  const auto device = Device(backend.get());
  const Bytes expected = Resident(3);
  trine_tensor& t = b_.tensors[gate_];
  trine_graph graph = b_.Abi();
  trine_layout_info info{};
  trine_layout_list list{sizeof(list), sizeof(info), 1, 0, &info};
  ASSERT_EQ(Table().layout_list(device.get(), &graph, gate_, &list, &err_), TRINE_OK);
  ASSERT_EQ(list.count, 1u);
  Bytes packed(info.packed_bytes);
  trine_layout_convert_args args{};
  args.struct_size = sizeof(args);
  args.direction = TRINE_LAYOUT_PACK;
  args.tensor = &t;
  args.layout = info.layout;
  args.row_end = kHidden;
  args.src = contents_[t.slot].data();
  args.dst = packed.data();
  ASSERT_EQ(Table().layout_convert(device.get(), &args, &err_), TRINE_OK);
  t.layout = info.layout;
  b_.slots[t.slot].bytes = packed.size();
  contents_[t.slot] = packed;
  for (const Keep keep : kHostKeeps) {
    BoundPlan plan(device.get(), b_, contents_, keep);
    ASSERT_EQ(plan.Run({3}), TRINE_OK) << plan.error.message;
    EXPECT_EQ(Outputs(plan, 3), expected);
  }
}

// A run uses what is in the memory when it begins.
TEST_F(HipStreamingTest, ReadsWeightsAtEachRun) {
  const auto backend = Backend(kOptions);
  const auto device = Device(backend.get());
  for (const Keep keep : kHostKeeps) {
    BoundPlan plan(device.get(), b_, contents_, keep);
    ASSERT_EQ(plan.Run({2}), TRINE_OK);
    const Bytes before = Outputs(plan, 2);
    std::byte* memory = plan.HostMemory(b_.tensors[gate_].slot);
    memory[2] ^= static_cast<std::byte>(0x77);
    ASSERT_EQ(plan.Run({2}), TRINE_OK);
    EXPECT_NE(Outputs(plan, 2), before);
    memory[2] ^= static_cast<std::byte>(0x77);
    ASSERT_EQ(plan.Run({2}), TRINE_OK);
    EXPECT_EQ(Outputs(plan, 2), before);
  }
}

// Copies to the stages and kernels between them, in the order in which they were done.
struct Turns {
  std::vector<const void*> filled;  // by copy that fills another stage than the copy before
  std::set<const void*> stages;
  size_t ahead = 0;  // copies done before the kernel that reads the copy before
};
Turns TurnsOf(const std::vector<Done>& trace, uint64_t stage_bytes) {
  Turns turns;
  uint64_t copying = 0;
  for (const Done& done : trace) {
    if (done.kernel.empty() && done.bytes > 4096) copying = std::max(copying, done.stream);
  }
  const std::byte* last = nullptr;
  size_t kernels = 0;
  for (const Done& done : trace) {
    if (done.stream != copying || !done.kernel.empty()) {
      if (done.kernel.find("matmul") != std::string::npos) ++kernels;
      continue;
    }
    const auto* to = static_cast<const std::byte*>(done.to);
    if (last != nullptr && to >= last && to < last + stage_bytes) continue;  // of the same turn
    if (kernels < turns.filled.size()) ++turns.ahead;
    turns.filled.push_back(to);
    turns.stages.insert(to);
    last = to;
  }
  return turns;
}

TEST_F(HipStreamingTest, FillsOneStageWhileTheOtherIsRead) {
  const auto backend = Backend("stage=65536;pace=newest;register-files=1");
  const auto device = Device(backend.get());
  for (const Keep keep : {Keep::kPinned, Keep::kRegistered, Keep::kFile}) {
    BoundPlan plan(device.get(), b_, contents_, keep);
    emulator::StartTrace();
    ASSERT_EQ(plan.Run({1}), TRINE_OK);
    const std::vector<Done> trace = emulator::TakeTrace();
    const Turns turns = TurnsOf(trace, kStage);
    EXPECT_EQ(turns.stages.size(), 2u);
    EXPECT_GT(turns.filled.size(), constants_ / kStage);
    for (size_t i = 1; i < turns.filled.size(); ++i) {
      EXPECT_NE(turns.filled[i], turns.filled[i - 1]) << "turn " << i;
    }
    // The stream of copies goes first where it may: always one turn ahead of the kernels. (For the
    // experts that can't be told: a product that is read in place comes before them.)
    EXPECT_GE(turns.ahead + 5, turns.filled.size());
    for (const Done& done : trace) {
      EXPECT_TRUE(!done.kernel.empty() || done.pinned) << "a copy from memory that is not pinned";
    }
  }
}

TEST_F(HipStreamingTest, PagesOfFilesGoThroughPinnedMemory) {
  const auto backend = Backend(kOptions);
  const auto device = Device(backend.get());
  BoundPlan plan(device.get(), b_, contents_, Keep::kFile);
  emulator::StartTrace();
  ASSERT_EQ(plan.Run({1}), TRINE_OK);
  uint64_t bytes = 0;
  for (const Done& done : emulator::TakeTrace()) {
    if (!done.kernel.empty()) continue;
    EXPECT_TRUE(done.pinned);
    bytes += done.bytes;
  }
  EXPECT_GE(bytes, constants_);
}

TEST_F(HipStreamingTest, PagesOfFilesArePinnedWhereThePlatformCan) {
  const auto kind_of_file = [&](const std::string& options) {
    const auto backend = Backend(options);
    const auto device = Device(backend.get());
    alignas(64) static std::byte memory[256];
    const BufferPtr buffer = Import(device.get(), memory, sizeof(memory), true);
    EXPECT_NE(buffer, nullptr);
    EXPECT_TRUE(device->Health().ok());
    return buffer->memory.kind();
  };
  EXPECT_EQ(kind_of_file("register-files=1"), MemoryKind::kPinnedFile);
  EXPECT_EQ(kind_of_file("register-files=1;pin=0"), MemoryKind::kPageable);
  EXPECT_EQ(kind_of_file(""), MemoryKind::kPageable);
}

TEST_F(HipStreamingTest, MorePagesThanTheMachineCanSpareAreNotPinned) {
  const auto backend = Backend("register-files=1");
  const auto device = Device(backend.get());
  alignas(64) static std::byte memory[256];
  std::string why;
  const GpuMemory most = device->gpu->ImportReadOnly(memory, uint64_t{1} << 46, &why);
  EXPECT_EQ(most.kind(), MemoryKind::kPageable);
  EXPECT_THAT(why, HasSubstr("three quarters"));
  why.clear();
  const GpuMemory little = device->gpu->ImportReadOnly(memory, sizeof(memory), &why);
  EXPECT_EQ(little.kind(), MemoryKind::kPinnedFile);
  EXPECT_EQ(why, "");
}

TEST_F(HipStreamingTest, TakesTwoStagesAndNoMore) {
  const auto backend = Backend(kOptions);
  const auto device = Device(backend.get());
  const FreeMemory before = MemoryOf(0);
  {
    BoundPlan first(device.get(), b_, contents_, Keep::kPinned);
    const uint64_t one = before.available - MemoryOf(0).available;
    EXPECT_LT(one, 2 * kStage + (512 << 10)) << "stages and scratch";
    EXPECT_LT(one, constants_);
    BoundPlan second(device.get(), b_, contents_, Keep::kFile);
    const uint64_t both = before.available - MemoryOf(0).available;
    EXPECT_EQ(both - one, one - 2 * kStage) << "plans share the stages";
    ASSERT_EQ(first.Run({4}), TRINE_OK);
    ASSERT_EQ(second.Run({4}), TRINE_OK);
    EXPECT_EQ(before.available - MemoryOf(0).available, both) << "a run takes nothing";
  }
  EXPECT_EQ(MemoryOf(0).available, before.available);
}

TEST_F(HipStreamingTest, WithoutRoomForStagesAPlanIsRefusedAndNothingIsLost) {
  const auto backend = Backend(kOptions);
  const auto device = Device(backend.get());
  const auto used = [] { return MemoryOf(0).total - MemoryOf(0).available; };
  const uint64_t before = used();
  uint64_t needed = 0;
  {
    const BoundPlan plan(device.get(), b_, contents_, Keep::kPinned);
    needed = used() - before;
  }
  for (const uint64_t missing : {uint64_t{1}, kStage + 1}) {  // for one stage, and for both
    emulator::DeviceSettings settings;
    settings.memory_bytes = before + needed - missing;
    emulator::Reset(settings);
    BoundPlan plan(device.get(), b_, contents_, Keep::kPinned);
    EXPECT_EQ(plan.status, TRINE_RESOURCE_EXHAUSTED) << plan.error.message;
    EXPECT_TRUE(device->Health().ok());
    EXPECT_EQ(emulator::PeakBytes(0), before + needed - kStage * (missing > kStage ? 2 : 1));
  }
  emulator::Reset({});
  BoundPlan plan(device.get(), b_, contents_, Keep::kPinned);
  EXPECT_EQ(plan.Run({1}), TRINE_OK) << plan.error.message;
}

// A table that no product reads is brought in whole, if necessary into stages of the plan's own.
TEST_F(HipStreamingTest, WhatHasNoWindowsGetsLargerStages) {
  sdk::GraphBuilder b;
  std::map<uint32_t, Bytes> contents;
  const uint32_t table = b.Tensor(TRINE_DTYPE_F32, {256, 200}, TRINE_ROLE_CONSTANT, 204800);
  const uint32_t ids = b.Tensor(TRINE_DTYPE_I32, {3}, TRINE_ROLE_IO, 12);
  const uint32_t y = b.Tensor(TRINE_DTYPE_F32, {256, 3}, TRINE_ROLE_IO, 3072);
  b.Op(TRINE_OP_GATHER_ROWS, {table, ids}, {y});
  contents[0] = Floats(256 * 200, 3);
  const int32_t rows[] = {199, 0, 77};
  contents[1].resize(12);
  std::memcpy(contents[1].data(), rows, 12);
  const auto backend = Backend(kOptions);
  const auto device = Device(backend.get());
  for (const Keep keep : kHostKeeps) {
    BoundPlan plan(device.get(), b, contents, keep);
    emulator::StartTrace();
    ASSERT_EQ(plan.Run({}), TRINE_OK) << plan.error.message;
    uint64_t copied = 0;
    for (const Done& done : emulator::TakeTrace()) copied += done.bytes;
    EXPECT_EQ(copied >= 204800, keep == Keep::kFile) << "pinned tables are read where they are";
    const Bytes out = plan.Read(2);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(std::memcmp(out.data() + 1024 * i,
                            contents[0].data() + 1024 * static_cast<size_t>(rows[i]), 1024),
                0);
    }
  }
}

TEST_F(HipStreamingTest, RunsWithSignals) {
  const Bytes expected = Resident(2);
  for (const char* pace : {"at-once", "newest", "oldest"}) {
    const auto backend = Backend(std::string(kOptions) + ";pace=" + pace);
    const auto device = Device(backend.get());
    for (const Keep keep : kHostKeeps) {
      // Both plans use the same stages: the second must not begin before the first is done with
      // them.
      BoundPlan first(device.get(), b_, contents_, keep), second(device.get(), b_, contents_, keep);
      trine_timeline timeline(0);
      const trine_point points[] = {{&timeline, 1}, {&timeline, 2}};
      ASSERT_EQ(first.Run({2}, {0, 1, 0, 0, nullptr, &points[0]}), TRINE_OK);
      ASSERT_EQ(second.Run({2}, {1, 1, 0, 0, &points[0], &points[1]}), TRINE_OK);
      ASSERT_EQ(timeline.Wait(2, 20'000'000'000, &err_), TRINE_OK) << err_.message;
      EXPECT_EQ(Outputs(first, 2), expected) << pace;
      EXPECT_EQ(Outputs(second, 2), expected) << pace;
    }
  }
}

TEST_F(HipStreamingTest, TellsHowLongKernelsWaitForWeights) {
  const auto backend = Backend(kOptions);
  const auto device = Device(backend.get());
  BoundPlan plan(device.get(), b_, contents_, Keep::kPinned);
  profiling_ = 1;
  ASSERT_EQ(plan.Run({1}), TRINE_OK);
  EXPECT_THAT(timed_, Contains("weights"));
  EXPECT_THAT(timed_, Contains("matmul q4_0"));
  const Bytes timed = Outputs(plan, 1);
  profiling_ = 0;
  ASSERT_EQ(plan.Run({1}), TRINE_OK);
  EXPECT_EQ(Outputs(plan, 1), timed);
}

// Whichever call fails, and whenever, it returns a status, and so do later calls.
TEST_F(HipStreamingTest, AFaultAtAnyCallIsAStatus) {
  for (const Call call : {Call::kMalloc, Call::kCopy, Call::kStart, Call::kSynchronize,
                          Call::kStream, Call::kEvent, Call::kHostMalloc}) {
    for (const Pace pace : {Pace::kAtOnce, Pace::kNewest}) {
      for (uint64_t from = 1;; from += from < 8 ? 1 : 7) {
        const auto backend = Backend(kOptions);
        const auto device = Device(backend.get());
        emulator::DeviceSettings settings;
        settings.failing = call;
        settings.failing_from = from;
        settings.pace = pace;
        emulator::Reset(settings);
        BoundPlan plan(device.get(), b_, contents_, from % 2 == 0 ? Keep::kFile : Keep::kPinned);
        if (plan.status == TRINE_OK) plan.Run({1});
        if (plan.status == TRINE_OK) break;  // it is never called so often
        const bool memory = call == Call::kMalloc || call == Call::kHostMalloc;
        EXPECT_EQ(plan.status, memory ? TRINE_RESOURCE_EXHAUSTED : TRINE_UNAVAILABLE)
            << static_cast<int>(call) << " " << from << ": " << plan.error.message;
        EXPECT_EQ(absl::IsUnavailable(device->Health()), !memory);
        EXPECT_EQ(device->Health().ok(), memory);
        ASSERT_LT(from, 2000u);
      }
    }
  }
}

TEST_F(HipStreamingTest, MemoryThatCantBePinnedIsRefusedAndNothingIsLost) {
  const auto backend = Backend("register=0");
  backend->verdicts[0].reset();
  EXPECT_EQ(DescribeDevice(backend.get(), 0).imports,
            uint32_t{TRINE_IMPORTS_TRIED | TRINE_IMPORTS_READ_ONLY});
  EXPECT_THAT(DescribeDevice(backend.get(), 0).import_refusal, HasSubstr("could not be pinned"));
  const auto device = Device(backend.get());
  alignas(64) static std::byte memory[256];
  EXPECT_EQ(Import(device.get(), memory, sizeof(memory), false), nullptr);
  EXPECT_EQ(status_, TRINE_UNIMPLEMENTED);
  EXPECT_THAT(err_.message, HasSubstr("could not be pinned"));
  EXPECT_NE(Import(device.get(), memory, sizeof(memory), true), nullptr);
  EXPECT_TRUE(device->Health().ok());
}

TEST_F(HipStreamingTest, PagesOfFilesAreConstants) {
  const auto backend = Backend("");
  const auto device = Device(backend.get());
  alignas(64) static std::byte memory[512];
  const BufferPtr file = Import(device.get(), memory, sizeof(memory), true);
  EXPECT_EQ(Table().buffer_write(file.get(), 0, memory, 1, &err_), TRINE_INVALID_ARGUMENT);
  const trine_copy copy{{nullptr, memory, 0}, {file.get(), nullptr, 0}, 64};
  const trine_copy_args args{sizeof(args), 1, sizeof(copy), 0, &copy, {}};
  EXPECT_EQ(Table().copy_run(device.get(), &args, &err_), TRINE_INVALID_ARGUMENT);
  sdk::GraphBuilder b;
  const uint32_t x = b.Tensor(TRINE_DTYPE_F32, {64}, TRINE_ROLE_STATE, 256);
  b.Op(TRINE_OP_ADD, {x, x}, {x});
  const trine_graph graph = b.Abi();
  const trine_binding binding{0, 0, {file.get(), 0, 256}};
  trine_plan_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.n_bindings = 1;
  desc.binding_stride = sizeof(binding);
  desc.graph = &graph;
  desc.bindings = &binding;
  trine_plan* plan = nullptr;
  EXPECT_EQ(Table().plan_create(device.get(), &desc, &plan, &err_), TRINE_INVALID_ARGUMENT);
  EXPECT_THAT(err_.message, HasSubstr("slot 0 is bound to is memory that can't be written"));
}

}  // namespace
}  // namespace trine::hip
