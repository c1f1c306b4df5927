#include "backends/hip/io_shadows.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/abi/graph_builder.h"

namespace trine::hip {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Formats ranges as "slot: begin to end".
std::vector<std::string> Text(const std::vector<sdk::ByteRange>& ranges) {
  std::vector<std::string> text;
  for (const sdk::ByteRange& r : ranges) {
    text.push_back(std::to_string(r.slot) + ": " + std::to_string(r.begin) + " to " +
                   std::to_string(r.end));
  }
  return text;
}

class HipIoShadowsTest : public ::testing::Test {
 protected:
  IoShadows::Transfers At(const std::vector<int64_t>& params) {
    EXPECT_EQ(builder_.Refusal(&graph_), "");
    return IoShadows(graph_).At(params);
  }

  sdk::GraphBuilder builder_;
  sdk::Graph graph_;
};

TEST_F(HipIoShadowsTest, HaveRoomForEveryIoSlotAlone) {
  builder_.Slot(TRINE_ROLE_CONSTANT, 1000);
  builder_.Slot(TRINE_ROLE_IO, 1000);
  builder_.Slot(TRINE_ROLE_STATE, 1000);
  builder_.Slot(TRINE_ROLE_IO, 10, 2);
  ASSERT_EQ(builder_.Refusal(&graph_), "");
  const IoShadows shadows(graph_);
  EXPECT_EQ(shadows.bytes(), 1024u + 256u);
  EXPECT_EQ(shadows.OffsetOf(0), std::nullopt);
  EXPECT_EQ(shadows.OffsetOf(1), 0u);
  EXPECT_EQ(shadows.OffsetOf(2), std::nullopt);
  EXPECT_EQ(shadows.OffsetOf(3), 1024u);
}

TEST_F(HipIoShadowsTest, BringInWhatIsReadAndTakeOutWhatIsWritten) {
  const int64_t n = builder_.Param(1, 16);
  const uint32_t x = builder_.F32({8, n}), y = builder_.F32({8, n}), z = builder_.F32({8, n});
  builder_.Op(TRINE_OP_ADD, {x, x}, {y});
  builder_.Op(TRINE_OP_ADD, {y, x}, {z});  // y is the run's own by then
  const IoShadows::Transfers transfers = At({3});
  EXPECT_THAT(Text(transfers.in), ElementsAre("0: 0 to 96"));
  EXPECT_THAT(Text(transfers.out), ElementsAre("1: 0 to 96", "2: 0 to 96"));
}

TEST_F(HipIoShadowsTest, KeepWhatLiesBetweenRows) {
  const uint32_t x = builder_.Tensor(TRINE_DTYPE_F32, {8, 4}, TRINE_ROLE_STATE);
  const uint32_t y = builder_.F32({8, 4});
  builder_.tensors[y].strides[1] = 64;
  builder_.tensors[y].offset = 256;
  builder_.Op(TRINE_OP_ADD, {x, x}, {y});
  const IoShadows::Transfers transfers = At({});
  EXPECT_THAT(Text(transfers.in), ElementsAre("1: 256 to 480"));
  EXPECT_THAT(Text(transfers.out), ElementsAre("1: 256 to 480"));
}

TEST_F(HipIoShadowsTest, LeaveOtherSlotsAlone) {
  const uint32_t x = builder_.Tensor(TRINE_DTYPE_F32, {8}, TRINE_ROLE_STATE);
  const uint32_t y = builder_.Tensor(TRINE_DTYPE_F32, {8}, TRINE_ROLE_STATE);
  builder_.Op(TRINE_OP_ADD, {x, x}, {y});
  EXPECT_THAT(At({}).in, IsEmpty());
  EXPECT_THAT(At({}).out, IsEmpty());
}

}  // namespace
}  // namespace trine::hip
