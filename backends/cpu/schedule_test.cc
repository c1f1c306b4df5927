#include "backends/cpu/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace trine::cpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A graph whose slots hold one f32 matrix [k, tokens] each, unless said otherwise.
class GraphMaker {
 public:
  static constexpr int64_t kK = 256, kTokens = 8;

  GraphMaker() {
    graph_.numerics = TRINE_NUMERICS_EXACT;
    graph_.params.push_back({TRINE_PARAM_TOKENS, 0, 1, kTokens});
  }

  uint32_t Tensor(uint32_t slot, std::vector<int64_t> dims, uint32_t dtype = TRINE_DTYPE_F32,
                  uint64_t offset = 0) {
    while (graph_.slots.size() <= slot) graph_.slots.push_back({TRINE_ROLE_TEMP, 1, 1 << 20});
    trine_tensor t{};
    t.dtype = dtype;
    t.rank = static_cast<uint32_t>(dims.size());
    t.slot = slot;
    t.offset = offset;
    std::copy(dims.begin(), dims.end(), t.dims);
    graph_.tensors.push_back(t);
    return static_cast<uint32_t>(graph_.tensors.size() - 1);
  }
  uint32_t Activations(uint32_t slot) { return Tensor(slot, {kK, -1}); }
  uint32_t Weights(uint32_t slot, uint32_t dtype = TRINE_DTYPE_Q8_0) {
    return Tensor(slot, {kK, kK}, dtype);
  }

  GraphMaker& Op(uint32_t kind, std::vector<uint32_t> in, std::vector<uint32_t> out) {
    graph_.ops.push_back({kind, std::move(in), std::move(out), {}});
    return *this;
  }
  Schedule Make() {
    Schedule schedule;
    EXPECT_EQ(MakeSchedule(graph_, &schedule), "");
    return schedule;
  }
  sdk::Graph& graph() { return graph_; }

 private:
  sdk::Graph graph_;
};

// "quantize 0", "| op 1": a bar is a barrier.
std::vector<std::string> Text(const Schedule& schedule) {
  std::vector<std::string> text;
  for (const Step& step : schedule.steps) {
    text.push_back(std::string(step.barrier ? "| " : "") +
                   (step.kind == Step::Kind::kQuantize ? "quantize " : "op ") +
                   std::to_string(step.op));
  }
  return text;
}

TEST(ScheduleTest, OpsThatDoNotMeetNeedNoBarrier) {
  GraphMaker g;
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(2)});
  EXPECT_THAT(Text(g.Make()), ElementsAre("op 0", "op 1"));
}

TEST(ScheduleTest, AReadWaitsForTheWrite) {
  GraphMaker g;
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_SCALE, {g.Activations(1)}, {g.Activations(2)});
  EXPECT_THAT(Text(g.Make()), ElementsAre("op 0", "| op 1"));
}

TEST(ScheduleTest, AWriteWaitsForTheReadAndForTheWrite) {
  GraphMaker g;
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_SCALE, {g.Activations(2)}, {g.Activations(0)});
  g.Op(TRINE_OP_SCALE, {g.Activations(3)}, {g.Activations(0)});
  EXPECT_THAT(Text(g.Make()), ElementsAre("op 0", "| op 1", "| op 2"));
}

TEST(ScheduleTest, ABarrierSettlesWhatCameBefore) {
  GraphMaker g;
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_SCALE, {g.Activations(1)}, {g.Activations(2)});
  g.Op(TRINE_OP_SCALE, {g.Activations(1)}, {g.Activations(3)});
  EXPECT_THAT(Text(g.Make()), ElementsAre("op 0", "| op 1", "op 2"));
}

TEST(ScheduleTest, PartsOfASlotMeetOnlyWhereTheyOverlap) {
  GraphMaker g;
  const uint64_t half = GraphMaker::kK * GraphMaker::kTokens * sizeof(float);
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_SCALE, {g.Activations(0)},
       {g.Tensor(1, {GraphMaker::kK, -1}, TRINE_DTYPE_F32, half)});
  g.Op(TRINE_OP_SCALE, {g.Tensor(1, {GraphMaker::kK, -1}, TRINE_DTYPE_F32, half - 4)},
       {g.Activations(2)});
  EXPECT_THAT(Text(g.Make()), ElementsAre("op 0", "op 1", "| op 2"));
}

TEST(ScheduleTest, MatmulsOfOneInputShareItsQuantisation) {
  GraphMaker g;
  for (uint32_t i = 0; i < 3; ++i) {
    g.Op(TRINE_OP_MATMUL, {g.Weights(10 + i), g.Activations(0)}, {g.Activations(1 + i)});
  }
  const Schedule schedule = g.Make();
  EXPECT_THAT(Text(schedule), ElementsAre("quantize 0", "| op 0", "op 1", "op 2"));
  for (const Step& step : schedule.steps) EXPECT_EQ(step.activations, 0u);
  // Two places of eight rows of one chunk.
  EXPECT_EQ(schedule.scratch_bytes, 2u * 8 * 384);
}

TEST(ScheduleTest, AnInputThatChangedIsQuantisedAgain) {
  GraphMaker g;
  g.Op(TRINE_OP_MATMUL, {g.Weights(10), g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_ADD, {g.Activations(0), g.Activations(1)}, {g.Activations(0)});
  g.Op(TRINE_OP_MATMUL, {g.Weights(11), g.Activations(0)}, {g.Activations(2)});
  const Schedule schedule = g.Make();
  EXPECT_THAT(Text(schedule),
              ElementsAre("quantize 0", "| op 0", "| op 1", "| quantize 2", "| op 2"));
  EXPECT_NE(schedule.steps[3].activations, schedule.steps[0].activations);
}

TEST(ScheduleTest, AMatmulIntoItsOwnInputsSlotDoesNotKeepTheCopy) {
  GraphMaker g;
  g.Op(TRINE_OP_MATMUL, {g.Weights(10), g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_MATMUL, {g.Weights(11), g.Activations(1)}, {g.Activations(0)});
  g.Op(TRINE_OP_MATMUL, {g.Weights(12), g.Activations(0)}, {g.Activations(1)});
  const std::vector<std::string> text = Text(g.Make());
  EXPECT_EQ(std::count_if(text.begin(), text.end(),
                          [](const std::string& s) { return s.find("quantize") != s.npos; }),
            3);
}

// Two places are used in turn: the third copy goes where the first was, once nobody reads that.
TEST(ScheduleTest, APlaceIsNotOverwrittenWhileItIsRead) {
  GraphMaker g;
  for (uint32_t i = 0; i < 3; ++i) {
    g.Op(TRINE_OP_MATMUL, {g.Weights(10 + i), g.Activations(i)}, {g.Activations(4 + i)});
  }
  const Schedule schedule = g.Make();
  EXPECT_THAT(Text(schedule),
              ElementsAre("quantize 0", "| op 0", "quantize 1", "| op 1", "quantize 2", "| op 2"));
  EXPECT_EQ(schedule.steps[4].activations, schedule.steps[0].activations);
  EXPECT_NE(schedule.steps[2].activations, schedule.steps[0].activations);
}

TEST(ScheduleTest, FloatWeightsNeedNoQuantisation) {
  GraphMaker g;
  g.Op(TRINE_OP_MATMUL, {g.Weights(10, TRINE_DTYPE_F16), g.Activations(0)}, {g.Activations(1)});
  const Schedule schedule = g.Make();
  EXPECT_THAT(Text(schedule), ElementsAre("op 0"));
  EXPECT_EQ(schedule.scratch_bytes, 0u);
  EXPECT_EQ(schedule.steps[0].activations, kNoActivations);
}

// Attention of `tokens` over 64 blocks of 64 positions.
void AddAttention(GraphMaker* maker, uint32_t q_slot, uint32_t out_slot) {
  const uint32_t cache = maker->Tensor(6, {64, 64, 2, 100}, TRINE_DTYPE_F16);
  const uint32_t in[] = {maker->Tensor(q_slot, {64, 4, -1}),
                         cache,
                         cache,
                         maker->Tensor(7, {64, 1}, TRINE_DTYPE_I32),
                         maker->Tensor(8, {2}, TRINE_DTYPE_I32),
                         maker->Tensor(9, {1}, TRINE_DTYPE_I32)};
  maker->Op(TRINE_OP_ATTENTION, {std::begin(in), std::end(in)},
            {maker->Tensor(out_slot, {64, 4, -1})});
}

TEST(ScheduleTest, AttentionHasRoomForPartialResults) {
  GraphMaker maker;
  AddAttention(&maker, 0, 1);
  const Schedule schedule = maker.Make();
  // 8 tokens, 4 heads, 16 chunks of 256 positions: 64 values and a header of 16.
  EXPECT_EQ(schedule.attention.partial_floats, 8 * 4 * 16 * 80);
  EXPECT_EQ(schedule.attention.pairs, 8 * 2);
  EXPECT_EQ(schedule.scratch_bytes, schedule.partials + 8 * 4 * 16 * 80 * sizeof(float));
}

TEST(ScheduleTest, AttentionOpsTakeTurnsWithTheirRoom) {
  GraphMaker maker;
  AddAttention(&maker, 0, 1);
  AddAttention(&maker, 2, 3);
  EXPECT_THAT(Text(maker.Make()), ElementsAre("op 0", "| op 1"));
}

TEST(ScheduleTest, RefusesActivationsOfAbsurdSize) {
  GraphMaker g;
  g.graph().params[0].max = int64_t{1} << 45;
  g.Op(TRINE_OP_MATMUL, {g.Weights(10), g.Activations(0)}, {g.Activations(1)});
  Schedule schedule;
  EXPECT_THAT(MakeSchedule(g.graph(), &schedule), HasSubstr("too large"));
}

}  // namespace
}  // namespace trine::cpu
