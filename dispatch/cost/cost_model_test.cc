#include "dispatch/cost/cost_model.h"

#include <cmath>

#include "dispatch/cost/device_costs.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

TEST(CostCurveTest, IsStraightInADoubleLogarithmicPlot) {
  const CostCurve curve({{1, 2}, {4, 8}, {16, 8}});
  EXPECT_DOUBLE_EQ(curve.At(1), 2);
  EXPECT_DOUBLE_EQ(curve.At(2), 4);
  EXPECT_DOUBLE_EQ(curve.At(4), 8);
  EXPECT_DOUBLE_EQ(curve.At(7), 8);
  EXPECT_DOUBLE_EQ(curve.At(0.5), 2) << "as at the first point";
  EXPECT_DOUBLE_EQ(curve.At(64), 32) << "in proportion";
}

TEST(CostCurveTest, TakesNothingThatMakesNoSense) {
  EXPECT_TRUE(CostCurve({{1, 2}, {1, 3}}).empty());
  EXPECT_TRUE(CostCurve({{4, 2}, {1, 3}}).empty());
  EXPECT_TRUE(CostCurve({{1, 0}}).empty());
  EXPECT_TRUE(CostCurve({{1, NAN}}).empty());
  EXPECT_TRUE(CostCurve({{-1, 1}}).empty());
  EXPECT_EQ(CostCurve().At(3), 0);
}

// Numbers that can be added up by hand.
DeviceCosts RoundCosts() {
  DeviceCosts costs;
  costs.matmul_ns = 1000;
  costs.matmul[TRINE_DTYPE_Q8_0] = CostCurve({{1, 1}, {100, 100}});
  costs.attention_ns = 500;
  costs.attention = CostCurve({{1, 0.5}, {100, 50}});
  costs.attention_kv_ns = 2;
  costs.plain = {10, 1};
  costs.norm = {20, 2};
  return costs;
}

TEST(CostModelTest, AProductCostsItsWeightsAndMore) {
  OpGraph graph;
  const int64_t tokens = graph.AddParam(TRINE_PARAM_TOKENS, 1, 100);
  const TensorId w = graph.AddTensor(TRINE_ROLE_CONSTANT, TRINE_DTYPE_Q8_0, {64, 32});
  const TensorId x = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64, tokens});
  const TensorId y = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {32, tokens});
  graph.AddOp(TRINE_OP_MATMUL, {w, x, TRINE_NONE}, {y});
  graph.Finish();
  const PredictedTime one = PredictGraph(RoundCosts(), graph, {{1}, 0});
  EXPECT_DOUBLE_EQ(one.ns, 1000 + 64 * 32);
  EXPECT_DOUBLE_EQ(one.weight_bytes, 2 * 34 * 32);
  EXPECT_FALSE(one.unknown);
  EXPECT_NEAR(PredictGraph(RoundCosts(), graph, {{10}, 0}).ns, 1000 + 64 * 32 * 10, 1e-6);
}

TEST(CostModelTest, AStreamedProductWaitsForItsWeightsOrForItself) {
  OpGraph graph;
  const int64_t tokens = graph.AddParam(TRINE_PARAM_TOKENS, 1, 100);
  const TensorId w = graph.AddTensor(TRINE_ROLE_CONSTANT, TRINE_DTYPE_Q8_0, {64, 32});
  const TensorId x = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64, tokens});
  const TensorId y = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {32, tokens});
  graph.AddOp(TRINE_OP_MATMUL, {w, x, TRINE_NONE}, {y});
  graph.AddOp(TRINE_OP_COPY, {x}, {x});
  graph.Finish();
  EXPECT_TRUE(IsProduct(graph, 0));
  EXPECT_FALSE(IsProduct(graph, 1));
  EXPECT_EQ(ProductFlops(graph, 0, {{10}, 0}), 2 * 64 * 32 * 10);
  DeviceCosts costs = RoundCosts();
  costs.run_ns = 5;
  costs.in = {100, 2};
  costs.out = {200, 3};
  costs.stream_byte_ns = 10;
  const double bytes = 2 * 34 * 32;
  const double moves = 100 + 64 * 4 * 2 + 200 + 32 * 4 * 3;
  EXPECT_DOUBLE_EQ(PredictBorrowed(costs, BorrowedWeights::kStreamed, graph, 0, {{1}, 0}).ns,
                   bytes * 10 + 5 + moves)
      << "its weights take longer";
  costs.stream_byte_ns = 0.1;
  EXPECT_DOUBLE_EQ(PredictBorrowed(costs, BorrowedWeights::kStreamed, graph, 0, {{1}, 0}).ns,
                   1000 + 64 * 32 + 5 + moves)
      << "it takes longer";
  costs.stream_byte_ns = 10;
  EXPECT_DOUBLE_EQ(PredictBorrowed(costs, BorrowedWeights::kShared, graph, 0, {{1}, 0}).ns,
                   1000 + 64 * 32 + 5 + moves)
      << "shared weights need no fetching";
  costs.stream_byte_ns = 0.1;
  costs.unpacked = CostCurve({{1, 3}});
  EXPECT_DOUBLE_EQ(PredictBorrowed(costs, BorrowedWeights::kStreamed, graph, 0, {{1}, 0}).ns,
                   3 * (1000 + 64 * 32) + 5 + moves);
  EXPECT_DOUBLE_EQ(PredictUnpacked(costs, graph, {{1}, 0}, 1).ns,
                   3 * (1000 + 64 * 32) + 10 + 2 * 64);
  costs.stream_byte_ns = 0;
  EXPECT_DOUBLE_EQ(costs.StreamByteNs(), 2) << "as other bytes";
}

TEST(CostModelTest, AnUnmeasuredTypeIsUnknown) {
  OpGraph graph;
  const TensorId w = graph.AddTensor(TRINE_ROLE_CONSTANT, TRINE_DTYPE_Q4_0, {64, 32});
  const TensorId x = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64, 1});
  const TensorId y = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {32, 1});
  graph.AddOp(TRINE_OP_MATMUL, {w, x, TRINE_NONE}, {y});
  graph.Finish();
  EXPECT_TRUE(PredictGraph(RoundCosts(), graph, {}).unknown);
}

// One token chooses four of eight experts; eight tokens choose all, four tokens for each.
TEST(CostModelTest, ExpertsAreReadOnceForTheTokensThatShareThem) {
  OpGraph graph;
  const int64_t tokens = graph.AddParam(TRINE_PARAM_TOKENS, 1, 8);
  const TensorId w = graph.AddTensor(TRINE_ROLE_CONSTANT, TRINE_DTYPE_Q8_0, {64, 32, 8});
  const TensorId x = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64, 1, tokens});
  const TensorId ids = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {4, tokens});
  const TensorId y = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {32, 4, tokens});
  graph.AddOp(TRINE_OP_MOE_MATMUL, {w, x, ids, TRINE_NONE}, {y});
  graph.Finish();
  EXPECT_NEAR(PredictGraph(RoundCosts(), graph, {{1}, 0}).ns, 1000 + 4 * 64 * 32, 1e-6);
  EXPECT_NEAR(PredictGraph(RoundCosts(), graph, {{8}, 0}).ns, 1000 + 8 * 64 * 32 * 4, 1e-6);
  // A device that computes a part of the choices reads fewer experts.
  const auto part = [&](int64_t n, const ExpertPart& of) {
    return PredictOp(RoundCosts(), graph, 0, {{n}, 0}, of).ns;
  };
  EXPECT_NEAR(part(1, {0.75, 2}), 1000 + 2 * 64 * 32 * 1.5, 1e-6) << "two have all three choices";
  EXPECT_NEAR(part(1, {0.25, 6}), 1000 + 1 * 64 * 32, 1e-6);
  EXPECT_NEAR(part(8, {0.25, 6}), 1000 + 6 * 64 * 32 * 8.0 / 6, 1e-6);
  EXPECT_NEAR(part(8, {0, 6}), 1000, 1e-6);
}

TEST(CostModelTest, AttentionCostsWhatItSees) {
  const auto attention = [](uint32_t window, double positions) {
    OpGraph graph;
    const TensorId q = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {16, 4, 1});
    const Shape cache = {16, 64, 2, 8};
    const TensorId k = graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F16, cache);
    const TensorId v = graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F16, cache);
    const TensorId i = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {8, 1});
    const TensorId y = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {16, 4, 1});
    trine_attention_attr attr{};
    attr.window = window;
    graph.AddOp(TRINE_OP_ATTENTION, {q, k, v, i, i, i, TRINE_NONE}, {y}, attr);
    graph.Finish();
    return PredictGraph(RoundCosts(), graph, {{}, positions}).ns;
  };
  // 32 values per position: four heads at 0.5 each, and two heads of keys at 2 each.
  EXPECT_DOUBLE_EQ(attention(0, 100), 500 + 100 * 32 * (4 * 0.5 + 2 * 2));
  EXPECT_DOUBLE_EQ(attention(10, 100), 500 + 10 * 32 * (4 * 0.5 + 2 * 2));
  EXPECT_DOUBLE_EQ(attention(200, 100), attention(0, 100));
}

TEST(CostModelTest, SmallOpsCostTheirValues) {
  OpGraph graph;
  const TensorId a = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {8, 2});
  const TensorId w = graph.AddTensor(TRINE_ROLE_CONSTANT, TRINE_DTYPE_F32, {8});
  const TensorId b = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {8, 2});
  graph.AddOp(TRINE_OP_RMS_NORM, {a, w}, {b}, trine_norm_attr{0, 1e-5f});
  graph.AddOp(TRINE_OP_ADD, {a, a}, {b});
  graph.Finish();
  EXPECT_DOUBLE_EQ(PredictOp(RoundCosts(), graph, 0, {}).ns, 20 + 2 * 32);
  EXPECT_DOUBLE_EQ(PredictOp(RoundCosts(), graph, 1, {}).ns, 10 + 48);
}

TEST(GuessedCostsTest, PutDevicesInTheRightOrder) {
  const auto decode = [](uint32_t tier, uint32_t flags) {
    trine_device_info info{};
    info.tier = tier;
    info.flags = flags;
    return GuessCosts(info, 8).matmul.at(TRINE_DTYPE_Q4_0).At(1);
  };
  const double cpu = decode(TRINE_TIER_CPU, 0);
  EXPECT_LT(decode(TRINE_TIER_DGPU, 0), decode(TRINE_TIER_IGPU, 0));
  EXPECT_LE(decode(TRINE_TIER_IGPU, 0), cpu);
  EXPECT_GT(decode(TRINE_TIER_DGPU, TRINE_DEVICE_SOFTWARE), 10 * cpu);
  trine_device_info info{};
  info.tier = TRINE_TIER_CPU;
  EXPECT_GT(GuessCosts(info, 1).matmul.at(TRINE_DTYPE_Q4_0).At(1), cpu) << "with fewer threads";
}

}  // namespace
}  // namespace trine
