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

// Makes graphs whose slots hold one f32 matrix [k, tokens] each, unless said otherwise.
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
  Schedule Make(uint32_t workers = 2, bool quantizes = true) {
    return Make(ScheduleFor{workers, quantizes});
  }
  Schedule Make(const ScheduleFor& whom) {
    Schedule schedule;
    EXPECT_EQ(MakeSchedule(graph_, whom, &schedule), "");
    return schedule;
  }
  sdk::Graph& graph() { return graph_; }

 private:
  sdk::Graph graph_;
};

// Prints one line per step. " / " separates chains, " > " the calls of a chain.
std::vector<std::string> Text(const Schedule& schedule) {
  std::vector<std::string> text;
  for (const Step& step : schedule.steps) {
    std::string line;
    for (const Chain& chain : step.chains) {
      if (!line.empty()) line += " / ";
      for (const Call& call : chain.calls) {
        if (&call != &chain.calls.front()) line += " > ";
        line +=
            (call.kind == Call::Kind::kQuantize ? "quantize " : "op ") + std::to_string(call.op);
      }
    }
    text.push_back(line);
  }
  return text;
}

TEST(ScheduleTest, OpsThatDoNotMeetShareAStep) {
  GraphMaker g;
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(2)});
  EXPECT_THAT(Text(g.Make()), ElementsAre("op 0 / op 1"));
}

TEST(ScheduleTest, RowsFollowRowsWithoutABarrier) {
  GraphMaker g;
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_SCALE, {g.Activations(1)}, {g.Activations(2)});
  g.Op(TRINE_OP_RMS_NORM, {g.Activations(2)}, {g.Activations(0)});  // overwrites what op 0 read
  EXPECT_THAT(Text(g.Make()), ElementsAre("op 0 > op 1 > op 2"));
}

// Makes two views of one slot, shifted: row 1 of the first view is row 0 of the second.
TEST(ScheduleTest, RowsThatAreNotTheSameNeedOne) {
  const uint64_t row = GraphMaker::kK * sizeof(float);
  GraphMaker g;
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_SCALE, {g.Tensor(1, {GraphMaker::kK, -1}, TRINE_DTYPE_F32, row)},
       {g.Activations(2)});
  EXPECT_THAT(Text(g.Make()), ElementsAre("op 0", "op 1"));
}

TEST(ScheduleTest, AnotherNumberOfRowsNeedsOne) {
  GraphMaker g;
  g.graph().params.push_back({TRINE_PARAM_OUTPUT_ROWS, 0, 1, 4});
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_SCALE, {g.Tensor(1, {GraphMaker::kK, -2})}, {g.Tensor(2, {GraphMaker::kK, -2})});
  EXPECT_THAT(Text(g.Make()), ElementsAre("op 0", "op 1"));
}

TEST(ScheduleTest, RowsThatAnyoneMayReadNeedOne) {
  GraphMaker g;
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_GATHER_ROWS, {g.Activations(1), g.Tensor(2, {-1}, TRINE_DTYPE_I32)},
       {g.Activations(3)});
  EXPECT_THAT(Text(g.Make()), ElementsAre("op 0", "op 1"));
}

TEST(ScheduleTest, ChainsBecomeOneWhereAnOpJoinsThem) {
  GraphMaker g;
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(4)});
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(2)});
  g.Op(TRINE_OP_ADD, {g.Activations(1), g.Activations(2)}, {g.Activations(3)});
  EXPECT_THAT(Text(g.Make()), ElementsAre("op 0 > op 2 > op 3 / op 1"));
}

TEST(ScheduleTest, PartsOfASlotMeetOnlyWhereTheyOverlap) {
  GraphMaker g;
  const uint64_t half = GraphMaker::kK * GraphMaker::kTokens * sizeof(float);
  g.Op(TRINE_OP_SCALE, {g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_SCALE, {g.Activations(0)},
       {g.Tensor(1, {GraphMaker::kK, -1}, TRINE_DTYPE_F32, half)});
  g.Op(TRINE_OP_SCALE, {g.Tensor(1, {GraphMaker::kK, -1}, TRINE_DTYPE_F32, half - 4)},
       {g.Activations(2)});
  EXPECT_THAT(Text(g.Make()), ElementsAre("op 0 / op 1", "op 2"));
}

TEST(ScheduleTest, MatmulsOfOneInputShareItsQuantisation) {
  GraphMaker g;
  for (uint32_t i = 0; i < 3; ++i) {
    g.Op(TRINE_OP_MATMUL, {g.Weights(10 + i), g.Activations(0)}, {g.Activations(1 + i)});
  }
  const Schedule schedule = g.Make();
  EXPECT_THAT(Text(schedule), ElementsAre("quantize 0", "op 0 / op 1 / op 2"));
  for (const Chain& chain : schedule.steps[1].chains) EXPECT_EQ(chain.calls[0].activations, 0u);
  EXPECT_FALSE(schedule.steps[0].big);
  EXPECT_TRUE(schedule.steps[1].big);
  // Two places, each with eight rows of one chunk.
  EXPECT_EQ(schedule.scratch_bytes, 2u * 8 * 384);
}

TEST(ScheduleTest, ExpertsMayWantAQuantisationOfTheirOwn) {
  constexpr int64_t kK = GraphMaker::kK;
  GraphMaker g;
  const uint32_t x = g.Tensor(0, {kK, 1, -1}), ids = g.Tensor(6, {1, -1}, TRINE_DTYPE_I32);
  const uint32_t experts = g.Tensor(11, {kK, kK, 4}, TRINE_DTYPE_Q8_0);
  g.Op(TRINE_OP_MATMUL, {g.Weights(10), x}, {g.Activations(1)});
  g.Op(TRINE_OP_MOE_MATMUL, {experts, x, ids}, {g.Tensor(2, {kK, 1, -1})});
  g.Op(TRINE_OP_MATMUL, {g.Weights(12), x}, {g.Activations(3)});
  EXPECT_THAT(Text(g.Make()), ElementsAre("quantize 0", "op 0 / op 1 / op 2"));
  const Schedule schedule = g.Make({.workers = 2, .experts_apart = true});
  EXPECT_THAT(Text(schedule), ElementsAre("quantize 0", "op 0 / quantize 1", "op 1 / op 2"));
  const uint64_t of_experts = schedule.steps[2].chains[0].calls[0].activations;
  EXPECT_EQ(schedule.steps[1].chains[1].calls[0].activations, of_experts);
  EXPECT_NE(schedule.steps[1].chains[0].calls[0].activations, of_experts);
  EXPECT_NE(schedule.steps[2].chains[1].calls[0].activations, of_experts);
}

// The sum over experts takes the features of the product before it, for all of a token's experts.
TEST(ScheduleTest, TheSumOverExpertsNeedsNoBarrier) {
  constexpr int64_t kK = GraphMaker::kK;
  GraphMaker g;
  const uint32_t x = g.Tensor(0, {kK, 1, -1}), ids = g.Tensor(6, {2, -1}, TRINE_DTYPE_I32);
  const uint32_t experts = g.Tensor(11, {kK, kK, 4}, TRINE_DTYPE_Q8_0);
  const uint32_t down = g.Tensor(2, {kK, 2, -1}), weights = g.Tensor(4, {2, -1});
  g.Op(TRINE_OP_MOE_MATMUL, {experts, x, ids}, {down});
  g.Op(TRINE_OP_MOE_COMBINE, {down, weights}, {g.Activations(3)});
  g.Op(TRINE_OP_RMS_NORM, {g.Activations(3)}, {g.Activations(1)});
  EXPECT_THAT(Text(g.Make()), ElementsAre("quantize 0", "op 0 > op 1", "op 2"));
}

// A worker takes the same features of an expert's gate, of its up and of what joins them. Each of a
// token's experts is read, so that the step is cut into enough portions for all workers.
TEST(ScheduleTest, GateAndUpOfExpertsNeedNoBarrier) {
  constexpr int64_t kK = GraphMaker::kK;
  GraphMaker g;
  const uint32_t x = g.Tensor(0, {kK, 1, -1}), ids = g.Tensor(6, {2, -1}, TRINE_DTYPE_I32);
  const uint32_t gates = g.Tensor(11, {kK, kK, 4}, TRINE_DTYPE_Q8_0);
  const uint32_t ups = g.Tensor(12, {kK, kK, 4}, TRINE_DTYPE_Q8_0);
  const uint32_t gate = g.Tensor(1, {kK, 2, -1}), up = g.Tensor(2, {kK, 2, -1});
  g.Op(TRINE_OP_MOE_MATMUL, {gates, x, ids}, {gate});
  g.Op(TRINE_OP_MOE_MATMUL, {ups, x, ids}, {up});
  g.Op(TRINE_OP_MUL, {gate, up}, {g.Tensor(3, {kK, 2, -1})});
  const Schedule schedule = g.Make();
  EXPECT_THAT(Text(schedule), ElementsAre("quantize 0", "op 0 > op 1 > op 2"));
  const uint64_t matrix = kK * kK / 32 * 34;
  EXPECT_EQ(schedule.steps[1].chains[0].weight_bytes, 2 * 2 * matrix);
}

TEST(ScheduleTest, FeaturesFollowFeaturesWithoutABarrier) {
  GraphMaker g;
  g.Op(TRINE_OP_MATMUL, {g.Weights(10), g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_ACTIVATION, {g.Activations(1)}, {g.Activations(2)});
  g.Op(TRINE_OP_SCALE, {g.Activations(2)}, {g.Activations(2)});
  g.Op(TRINE_OP_RMS_NORM, {g.Activations(2)}, {g.Activations(3)});  // reads all features
  EXPECT_THAT(Text(g.Make()), ElementsAre("quantize 0", "op 0 > op 1 > op 2", "op 3"));
}

TEST(ScheduleTest, AnInputThatChangedIsQuantisedAgain) {
  GraphMaker g;
  g.Op(TRINE_OP_MATMUL, {g.Weights(10), g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_ADD, {g.Activations(0), g.Activations(2)}, {g.Activations(0)});
  g.Op(TRINE_OP_MATMUL, {g.Weights(11), g.Activations(0)}, {g.Activations(3)});
  const Schedule schedule = g.Make();
  // The first product reads the copy, not its source: the sum need not wait for it.
  EXPECT_THAT(Text(schedule), ElementsAre("quantize 0", "op 0 / op 1 > quantize 2", "op 2"));
  EXPECT_NE(schedule.steps[1].chains[1].calls[1].activations,
            schedule.steps[0].chains[0].calls[0].activations);
}

TEST(ScheduleTest, AMatmulIntoItsOwnInputsSlotDoesNotKeepTheCopy) {
  GraphMaker g;
  g.Op(TRINE_OP_MATMUL, {g.Weights(10), g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_MATMUL, {g.Weights(11), g.Activations(1)}, {g.Activations(0)});
  g.Op(TRINE_OP_MATMUL, {g.Weights(12), g.Activations(0)}, {g.Activations(1)});
  EXPECT_THAT(Text(g.Make()),
              ElementsAre("quantize 0", "op 0", "quantize 1", "op 1", "quantize 2", "op 2"));
}

// Two places are used in turn: the third copy replaces the first once all its readers are done.
TEST(ScheduleTest, APlaceIsNotOverwrittenWhileItIsRead) {
  GraphMaker g;
  for (uint32_t i = 0; i < 3; ++i) {
    g.Op(TRINE_OP_MATMUL, {g.Weights(10 + i), g.Activations(i)}, {g.Activations(4 + i)});
  }
  const Schedule schedule = g.Make();
  EXPECT_THAT(Text(schedule),
              ElementsAre("quantize 0", "op 0 / quantize 1", "op 1 / quantize 2", "op 2"));
  EXPECT_EQ(schedule.steps[2].chains[1].calls[0].activations, 0u);
  EXPECT_NE(schedule.steps[1].chains[1].calls[0].activations, 0u);
}

TEST(ScheduleTest, FloatWeightsNeedNoQuantisation) {
  GraphMaker g;
  g.Op(TRINE_OP_MATMUL, {g.Weights(10, TRINE_DTYPE_F16), g.Activations(0)}, {g.Activations(1)});
  const Schedule schedule = g.Make();
  EXPECT_THAT(Text(schedule), ElementsAre("op 0"));
  EXPECT_EQ(schedule.scratch_bytes, 0u);
  EXPECT_EQ(schedule.steps[0].chains[0].calls[0].activations, kNoActivations);
}

// The residual add overwrites the product's activations. If the product reads them itself, it must
// be done before.
TEST(ScheduleTest, ActivationsThatAreReadAsTheyAreStayUntilAllAreDone) {
  GraphMaker g;
  g.Op(TRINE_OP_MATMUL, {g.Weights(10), g.Activations(0)}, {g.Activations(1)});
  g.Op(TRINE_OP_ADD, {g.Activations(1), g.Activations(2)}, {g.Activations(0)});
  g.graph().slots[10].role = TRINE_ROLE_CONSTANT;
  EXPECT_THAT(Text(g.Make()), ElementsAre("quantize 0", "op 0 > op 1"));
  const Schedule reading = g.Make(2, false);
  EXPECT_THAT(Text(reading), ElementsAre("op 0", "op 1"));
  EXPECT_EQ(reading.scratch_bytes, 0u);
}

// Adds attention of `tokens` tokens over 64 blocks of 64 positions.
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
  EXPECT_THAT(Text(maker.Make()), ElementsAre("op 0", "op 1"));
}

TEST(ScheduleTest, RefusesActivationsOfAbsurdSize) {
  GraphMaker g;
  g.graph().params[0].max = int64_t{1} << 45;
  g.Op(TRINE_OP_MATMUL, {g.Weights(10), g.Activations(0)}, {g.Activations(1)});
  Schedule schedule;
  EXPECT_THAT(MakeSchedule(g.graph(), {2}, &schedule), HasSubstr("too large"));
}

// Makes a layer as llama has it: 8 heads of 32, 4 of keys and values. Slots of temporaries are
// reused as a host would reuse them.
GraphMaker LlamaLayer() {
  constexpr int64_t kHead = 32, kHeads = 8, kKvHeads = 4, kFfn = 512;
  enum : uint32_t { kX, kH, kQ, kK, kV, kY, kGate, kUp, kRope, kSlots, kMeta, kKeys, kValues };
  GraphMaker g;
  const auto heads = [&](uint32_t slot, int64_t n) { return g.Tensor(slot, {kHead, n, -1}); };
  const auto flat = [&](uint32_t slot, int64_t n) { return g.Tensor(slot, {n, -1}); };
  const auto weights = [&](int64_t k, int64_t n) {
    const uint32_t slot = 20 + static_cast<uint32_t>(g.graph().ops.size());
    const uint32_t tensor = g.Tensor(slot, {k, n}, TRINE_DTYPE_Q8_0);
    g.graph().slots[slot].role = TRINE_ROLE_CONSTANT;
    return tensor;
  };
  const int64_t n = GraphMaker::kK;
  const uint32_t rope = g.Tensor(kRope, {kHead, -1}), meta = g.Tensor(kMeta, {8}, TRINE_DTYPE_I32);
  const uint32_t slots = g.Tensor(kSlots, {-1}, TRINE_DTYPE_I32);
  const uint32_t keys = g.Tensor(kKeys, {kHead, 64, kKvHeads, 1}, TRINE_DTYPE_F16);
  const uint32_t values = g.Tensor(kValues, {kHead, 64, kKvHeads, 1}, TRINE_DTYPE_F16);
  g.Op(TRINE_OP_RMS_NORM, {flat(kX, n)}, {flat(kH, n)});                       // 0
  g.Op(TRINE_OP_MATMUL, {weights(n, n), flat(kH, n)}, {flat(kQ, n)});          // 1
  g.Op(TRINE_OP_MATMUL, {weights(n, n / 2), flat(kH, n)}, {flat(kK, n / 2)});  // 2
  g.Op(TRINE_OP_MATMUL, {weights(n, n / 2), flat(kH, n)}, {flat(kV, n / 2)});  // 3
  g.Op(TRINE_OP_ROPE, {heads(kQ, kHeads), rope}, {heads(kQ, kHeads)});         // 4
  g.Op(TRINE_OP_ROPE, {heads(kK, kKvHeads), rope}, {heads(kK, kKvHeads)});     // 5
  g.Op(TRINE_OP_KV_STORE, {heads(kK, kKvHeads), slots}, {keys});               // 6
  g.Op(TRINE_OP_KV_STORE, {heads(kV, kKvHeads), slots}, {values});             // 7
  g.Op(TRINE_OP_ATTENTION, {heads(kQ, kHeads), keys, values, meta, meta, meta},
       {heads(kH, kHeads)});                                                      // 8
  g.Op(TRINE_OP_MATMUL, {weights(n, n), flat(kH, n)}, {flat(kQ, n)});             // 9
  g.Op(TRINE_OP_ADD, {flat(kX, n), flat(kQ, n)}, {flat(kY, n)});                  // 10
  g.Op(TRINE_OP_RMS_NORM, {flat(kY, n)}, {flat(kX, n)});                          // 11
  g.Op(TRINE_OP_MATMUL, {weights(n, kFfn), flat(kX, n)}, {flat(kGate, kFfn)});    // 12
  g.Op(TRINE_OP_MATMUL, {weights(n, kFfn), flat(kX, n)}, {flat(kUp, kFfn)});      // 13
  g.Op(TRINE_OP_GLU, {flat(kGate, kFfn), flat(kUp, kFfn)}, {flat(kGate, kFfn)});  // 14
  g.Op(TRINE_OP_MATMUL, {weights(kFfn, n), flat(kGate, kFfn)}, {flat(kQ, n)});    // 15
  g.Op(TRINE_OP_ADD, {flat(kY, n), flat(kQ, n)}, {flat(kX, n)});                  // 16
  return g;
}

TEST(ScheduleTest, ALayerHasNineBarriers) {
  // There would be sixteen if every op that reads what another wrote waited for all of it. The
  // ninth is the one before the next layer.
  EXPECT_THAT(Text(LlamaLayer().Make()),
              ElementsAre("op 0 > quantize 1",                               //
                          "op 1 > op 4 / op 2 > op 5 > op 6 / op 3 > op 7",  //
                          "op 8", "quantize 9", "op 9 > op 10",              //
                          "op 11 > quantize 12",                             //
                          "op 12 > op 13 > op 14", "quantize 15", "op 15 > op 16"));
}

// Sixteen heads are too few to share out whole among eight workers.
TEST(ScheduleTest, ManyWorkersDoNotShareWholeHeads) {
  EXPECT_THAT(Text(LlamaLayer().Make(8)),
              ElementsAre("op 0 > quantize 1", "op 1 / op 2 / op 3", "op 4 / op 5 > op 6 / op 7",
                          "op 8", "quantize 9", "op 9 > op 10", "op 11 > quantize 12",
                          "op 12 > op 13 > op 14", "quantize 15", "op 15 > op 16"));
}

}  // namespace
}  // namespace trine::cpu
