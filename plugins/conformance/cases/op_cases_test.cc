// Tests the kit's own cases: each keeps the ABI's rules and has one answer.
#include "plugins/conformance/cases/op_cases.h"

#include <gtest/gtest.h>

#include "plugins/conformance/cases/oracle.h"
#include "trine/sdk/op_rules.h"

namespace trine::conformance {
namespace {

// Returns the rule that a graph breaks, or "".
std::string BrokenRule(const GraphSpec& spec, size_t padding) {
  const PackedGraph packed(spec, padding);
  sdk::Graph graph;
  trine_error err{};
  if (sdk::CopyGraph(packed.get(), &graph, &err) != TRINE_OK) return err.message;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const std::string wrong = sdk::CheckOp(graph, i);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

void CheckCase(const OpCase& op_case) {
  SCOPED_TRACE(op_case.graph.Describe());
  EXPECT_EQ(BrokenRule(op_case.graph, 0), "");
  EXPECT_EQ(BrokenRule(op_case.graph, 24), "");
  Images first = op_case.images, second = op_case.images;
  RunOracle(op_case.graph, op_case.params, &first);
  RunOracle(op_case.graph, op_case.params, &second);
  EXPECT_EQ(first, second);
  EXPECT_EQ(CompareImages(op_case.graph, op_case.params, first, second, true), "");
  EXPECT_NE(first, op_case.images) << "the case computes nothing";
}

TEST(OpCasesTest, KeepTheRulesAndHaveOneAnswer) {
  Random random(1);
  for (const OpGroup& group : AllOpGroups()) {
    SCOPED_TRACE(group.name);
    for (const OpCase& op_case : group.make(random)) CheckCase(op_case);
  }
}

TEST(OpCasesTest, TransformerLayerKeepsTheRules) {
  Random random(1);
  CheckCase(TransformerLayer(random, TRINE_DTYPE_Q4_K, TRINE_DTYPE_F16, 5));
}

TEST(OpCasesTest, EveryOpOfTheAbiHasCases) {
  Random random(1);
  std::vector<bool> seen(TRINE_OP_TOP_K + 1, false);
  for (const OpGroup& group : AllOpGroups()) {
    for (const OpCase& op_case : group.make(random)) seen[op_case.graph.ops[0].kind] = true;
  }
  for (uint32_t kind = 1; kind <= TRINE_OP_TOP_K; ++kind) {
    EXPECT_TRUE(seen[kind]) << sdk::OpName(kind);
  }
}

TEST(CompareImagesTest, SaysWhatDiffersAndWhere) {
  Random random(1);
  const OpCase op_case =
      MatmulCase(random, TRINE_DTYPE_F32, 32, 17, 3, false, Spread32::kBell, /*gapped=*/true);
  Images expected = op_case.images;
  RunOracle(op_case.graph, op_case.params, &expected);
  const trine_tensor& y = op_case.graph.tensors[op_case.graph.ops[0].out[0]];

  Images value = expected;  // changed at [3,1]
  value[y.slot][y.offset + static_cast<size_t>(y.strides[1]) + 12] ^= std::byte{1};
  EXPECT_NE(CompareImages(op_case.graph, op_case.params, expected, value, true)
                .find("at [3,1,0,0] expected 0x"),
            std::string::npos);
  EXPECT_EQ(CompareImages(op_case.graph, op_case.params, expected, value, false), "");

  Images gap = expected;  // changed in the first byte after row 0
  gap[y.slot][y.offset + 17 * 4] ^= std::byte{1};
  for (bool exact : {true, false}) {
    EXPECT_NE(CompareImages(op_case.graph, op_case.params, expected, gap, exact)
                  .find("outside of every output"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace trine::conformance
