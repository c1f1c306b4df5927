// Tests how the memory of a model is counted for its placement.
#include "runtime/model/weights/memory_check.h"

#include <stdlib.h>

#include <optional>

#include "gmock/gmock.h"
#include "runtime/model/weights/packed_weights.h"
#include "tests/model/shared_weights.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

class MemoryCheckTest : public SharedWeightsTest {
 protected:
  ~MemoryCheckTest() override { unsetenv("TRINE_FIXTURE_PACKING"); }

  // Makes a device that gets copies of its weights and has `free` bytes free.
  std::shared_ptr<Device> WithFree(uint64_t free) {
    setenv("TRINE_FIXTURE_PACKING", ("no-import,free:" + std::to_string(free)).c_str(), 1);
    return Open(TRINE_PACKING_PLUGIN);
  }
  // Makes a graph that multiplies with the weight.
  static SegmentGraph Graph(const gguf::TensorInfo& weight) {
    SegmentGraph g;
    const auto type = static_cast<uint32_t>(weight.type);
    const int64_t k = weight.dims[0], n = weight.dims[1];
    const TensorId w = g.graph.AddTensor(TRINE_ROLE_CONSTANT, type, {k, n});
    const TensorId x = g.graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {k, 1});
    const TensorId y = g.graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {n, 1});
    g.graph.AddOp(TRINE_OP_MATMUL, {w, x}, {y});
    g.graph.Finish();
    g.weights.push_back({w, &weight, false, std::nullopt});
    return g;
  }
  uint64_t SegmentBytes() {  // but for the weight
    const auto needs = Segment::Query(*WithFree(0), Graph(*weights_[0]).graph);
    EXPECT_TRUE(needs.ok()) << needs.status();
    return needs.ok() ? needs->scratch_bytes + needs->io_bytes : 0;
  }
  // Checks one segment for each weight, over the devices in turn.
  static absl::Status Check(const std::vector<std::shared_ptr<Device>>& devices,
                            const std::vector<const gguf::TensorInfo*>& weights,
                            uint64_t border_bytes = 0) {
    std::vector<SegmentPlace> places;
    std::vector<SegmentGraph> graphs;
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      places.push_back({devices[i % devices.size()], "it", at, at + 1});
      graphs.push_back(Graph(*weights[i]));
    }
    return CheckMemory(places, &graphs, true, false, border_bytes, [](const std::string&) {});
  }
};

TEST_F(MemoryCheckTest, AWeightOfSeveralSegmentsOfADeviceCountsOnce) {
  const auto* weight = weights_[0];
  const uint64_t once = weight->bytes + 3 * SegmentBytes();
  const absl::Status enough = Check({WithFree(once)}, {weight, weight, weight});
  EXPECT_TRUE(enough.ok()) << enough;
  const absl::Status less = Check({WithFree(once - 1)}, {weight, weight, weight});
  EXPECT_TRUE(absl::IsResourceExhausted(less)) << less;
  EXPECT_THAT(std::string(less.message()), HasSubstr("are needed"));
}

TEST_F(MemoryCheckTest, WhatIsBetweenSegmentsIsTheCpus) {
  const auto* weight = weights_[0];
  const uint64_t border = 12345 * 4096, all = weight->bytes + SegmentBytes() + border;
  const absl::Status enough = Check({WithFree(all)}, {weight}, border);
  EXPECT_TRUE(enough.ok()) << enough;
  EXPECT_TRUE(absl::IsResourceExhausted(Check({WithFree(all - 1)}, {weight}, border)));
}

TEST_F(MemoryCheckTest, DifferentWeightsCountEach) {
  const uint64_t both = weights_[0]->bytes + weights_[1]->bytes + 2 * SegmentBytes();
  EXPECT_TRUE(Check({WithFree(both)}, {weights_[0], weights_[1]}).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Check({WithFree(both - 1)}, {weights_[0], weights_[1]})));
}

TEST_F(MemoryCheckTest, EachDeviceHasItsOwn) {
  const auto* weight = weights_[0];
  const uint64_t each = weight->bytes + SegmentBytes();
  EXPECT_TRUE(Check({WithFree(each), WithFree(each)}, {weight, weight}).ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted(Check({WithFree(each), WithFree(each - 1)}, {weight, weight})));
}

// A driver holds on to what it imports, so such weights need room, unlike the CPU's own.
TEST_F(MemoryCheckTest, WeightsInAFileCountWhereADriverHoldsThem) {
  const auto* weight = weights_[0];
  const uint64_t all = weight->bytes + SegmentBytes();
  const auto check = [&](uint32_t index, uint64_t free) {
    setenv("TRINE_FIXTURE_PACKING", ("free:" + std::to_string(free)).c_str(), 1);
    return Check({Open(TRINE_PACKING_PLUGIN, "", index)}, {weight});
  };
  EXPECT_TRUE(check(1, all).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(check(1, all - 1)));
  EXPECT_TRUE(check(0, SegmentBytes()).ok());
  const absl::Status little = check(0, SegmentBytes() - 1);
  EXPECT_THAT(std::string(little.message()), HasSubstr("beside weights in the file's own pages"));
}

TEST_F(MemoryCheckTest, TheSumHasAllOfADevicesSegments) {
  constexpr int64_t kMiB = 1 << 20;
  const auto device = WithFree(16 * kMiB);
  std::vector<SegmentPlace> places;
  std::vector<SegmentGraph> graphs;
  for (int i = 0; i < 2; ++i) {
    places.push_back({device, "it", i, i + 1});
    graphs.push_back(Graph(*weights_[static_cast<size_t>(i)]));
    SegmentGraph& g = graphs.back();
    const TensorId cache = g.graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F16, {5 * kMiB});
    g.caches.push_back({cache, 0});
  }
  const absl::Status status =
      CheckMemory(places, &graphs, true, false, 0, [](const std::string&) {});
  EXPECT_THAT(std::string(status.message()), HasSubstr("20 MiB of them for the KV cache and"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("at least"));
}

// Pieces of one segment on a device have one scratch, one memory for what is between them, and each
// cache once, even if several use it.
TEST_F(MemoryCheckTest, PiecesOfASegmentShareWhatTheyRunIn) {
  constexpr int64_t kCache = 1 << 20;
  constexpr uint64_t kIo = 12345;
  const auto needs = Segment::Query(*WithFree(0), Graph(*weights_[0]).graph);
  ASSERT_TRUE(needs.ok()) << needs.status();
  const auto check = [&](uint64_t free) {
    const auto device = WithFree(free);
    std::vector<SegmentPlace> places;
    std::vector<SegmentGraph> graphs;
    for (int i = 0; i < 3; ++i) {
      places.push_back({device, "it", 0, 1});
      places.back().segment = 4;
      places.back().shared_io_bytes = kIo;
      graphs.push_back(Graph(*weights_[0]));
      SegmentGraph& g = graphs.back();
      const TensorId cache = g.graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F16, {kCache / 2});
      g.caches.push_back({cache, 0, 7});
    }
    return CheckMemory(places, &graphs, true, false, 0, [](const std::string&) {});
  };
  const uint64_t all = weights_[0]->bytes + needs->scratch_bytes + kIo + kCache;
  EXPECT_TRUE(check(all).ok()) << check(all);
  EXPECT_TRUE(absl::IsResourceExhausted(check(all - 1)));
}

// The device refuses the graph with any layout of its weights: the layout is not to blame.
TEST_F(MemoryCheckTest, ARefusalThatLayoutsDidNotCauseIsSaidOnce) {
  const auto device = WithFree(0);
  std::vector<SegmentGraph> graphs;
  graphs.push_back(Graph(*weights_[0]));
  ChooseLayouts(*device, &graphs[0], [](const std::string&) {});
  ASSERT_TRUE(graphs[0].weights[0].packed.has_value());
  const TensorId x = graphs[0].graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {3, 1});
  const TensorId y = graphs[0].graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {5, 1});
  graphs[0].graph.AddOp(TRINE_OP_MATMUL, {x, y}, {y});
  int warnings = 0;
  const absl::Status status = CheckMemory({{device, "it", 0, 1}}, &graphs, true, false, 0,
                                          [&](const std::string&) { ++warnings; });
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(warnings, 0);
}

}  // namespace
}  // namespace trine
