#include "gmock/gmock.h"
#include "tests/abi/graph_builder.h"
#include "trine/sdk/support.h"

namespace trine::sdk {
namespace {

// An ADD and a MUL of four values.
class SupportTest : public testing::Test {
 protected:
  SupportTest() {
    for (int i = 0; i < 4; ++i) builder_.Tensor(TRINE_DTYPE_F32, {4}, TRINE_ROLE_IO, 16);
    builder_.Op(TRINE_OP_ADD, {0, 1}, {2});
    builder_.Op(TRINE_OP_MUL, {0, 2}, {3});
  }
  static std::string NoRefusal(const Graph&, size_t) { return ""; }
  static uint32_t MulIsFast(const Graph& graph, size_t op) {
    return graph.ops[op].kind == TRINE_OP_MUL ? TRINE_SUPPORT_FAST : TRINE_SUPPORT_EXACT;
  }
  uint32_t Query(uint32_t op) {
    const trine_graph graph = builder_.Abi();
    trine_op_support answer{};
    answer.struct_size = sizeof(answer);
    trine_error err{};
    EXPECT_EQ(AnswerOpQuery(&graph, op, MulIsFast, NoRefusal, &answer, &err), TRINE_OK);
    return answer.support;
  }
  std::string Plan(uint32_t numerics, trine_plan_info* info) {
    trine_graph graph = builder_.Abi();
    graph.numerics = numerics;
    info->struct_size = sizeof(*info);
    trine_error err{};
    const auto extra = [](const Graph& g) { return 10 * g.ops.size(); };
    const trine_status s = AnswerPlanQuery(&graph, MulIsFast, NoRefusal, extra, info, &err);
    return s == TRINE_OK ? "" : err.message;
  }

  GraphBuilder builder_;
};

TEST_F(SupportTest, EachOpHasItsOwn) {
  EXPECT_EQ(Query(0), static_cast<uint32_t>(TRINE_SUPPORT_EXACT));
  EXPECT_EQ(Query(1), static_cast<uint32_t>(TRINE_SUPPORT_FAST));
}

TEST_F(SupportTest, AnExactGraphWithAFastOpIsRefused) {
  trine_plan_info info{};
  EXPECT_EQ(Plan(TRINE_NUMERICS_EXACT, &info),
            "op 1: it does not keep the exactness contract here");
  EXPECT_EQ(Plan(TRINE_NUMERICS_FAST, &info), "");
  EXPECT_EQ(info.scratch_bytes, 20u) << "there are no TEMP slots";
}

}  // namespace
}  // namespace trine::sdk
