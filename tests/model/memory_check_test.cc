// What a model takes, counted as it is placed.
#include "runtime/model/memory_check.h"

#include <stdlib.h>

#include <optional>

#include "gmock/gmock.h"
#include "tests/model/shared_weights.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

class MemoryCheckTest : public SharedWeightsTest {
 protected:
  ~MemoryCheckTest() override { unsetenv("TRINE_FIXTURE_PACKING"); }

  // A device that gets copies of its weights and has so many bytes free.
  std::shared_ptr<Device> WithFree(uint64_t free) {
    setenv("TRINE_FIXTURE_PACKING", ("no-import,free:" + std::to_string(free)).c_str(), 1);
    return Open(TRINE_PACKING_PLUGIN);
  }
  // One that multiplies with the weight.
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
    const auto needs =
        Segment::Query(*WithFree(0), Graph(*weights_[0]).graph, TRINE_NUMERICS_EXACT);
    EXPECT_TRUE(needs.ok()) << needs.status();
    return needs.ok() ? needs->scratch_bytes + needs->io_bytes : 0;
  }
  // A segment for each weight, in turn on the devices.
  static absl::Status Check(const std::vector<std::shared_ptr<Device>>& devices,
                            const std::vector<const gguf::TensorInfo*>& weights) {
    std::vector<SegmentPlace> places;
    std::vector<SegmentGraph> graphs;
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      places.push_back({devices[i % devices.size()], "it", at, at + 1});
      graphs.push_back(Graph(*weights[i]));
    }
    return CheckMemory(places, &graphs, true, false, [](const std::string&) {});
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

}  // namespace
}  // namespace trine
