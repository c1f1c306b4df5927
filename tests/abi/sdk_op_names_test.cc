#include "gtest/gtest.h"
#include "tests/abi/graph_builder.h"

namespace trine::sdk {
namespace {

TEST(OpNamesTest, ProductsSayTheTypeOfTheirWeights) {
  GraphBuilder builder;
  const uint32_t x = builder.F32({32, 2}), y = builder.F32({4, 2});
  builder.Op(TRINE_OP_MATMUL, {builder.Tensor(TRINE_DTYPE_Q8_0, {32, 4}), x}, {y});
  builder.Op(TRINE_OP_ADD, {x, x}, {x});
  Graph graph;
  ASSERT_EQ(builder.Refusal(&graph), "");
  EXPECT_STREQ(TimedName(graph, graph.ops[0]), "matmul q8_0");
  EXPECT_EQ(TimedName(graph, graph.ops[0]), TimedName(graph, graph.ops[0])) << "a constant";
  EXPECT_STREQ(TimedName(graph, graph.ops[1]), "add");
}

}  // namespace
}  // namespace trine::sdk
