// Tests the kit's own cases: each keeps the ABI's rules and has one answer.
#include "plugins/conformance/cases/op_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

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
  const Images first = RunOracle(op_case.graph, op_case.params, op_case.images).contract;
  const Images second = RunOracle(op_case.graph, op_case.params, op_case.images).contract;
  EXPECT_EQ(first, second);
  EXPECT_EQ(CompareBits(op_case.graph, op_case.params, first, second), "");
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

// A FAST product of 17 features and 3 tokens, with access to its results.
struct ProductCase {
  explicit ProductCase(uint32_t dtype, Spread32 spread = Spread32::kBell, int64_t k = 256) {
    Random random(1);
    op_case = MatmulCase(random, dtype, k, 17, 3, false, spread, /*gapped=*/true);
    graph.numerics = TRINE_NUMERICS_FAST;
  }

  size_t At(int64_t feature, int64_t token) const {
    const trine_tensor& y = graph.tensors[graph.ops[0].out[0]];
    return y.offset + static_cast<size_t>(token * y.strides[1] + feature * 4);
  }
  uint32_t slot() const { return graph.tensors[graph.ops[0].out[0]].slot; }
  void Set(Images* images, int64_t feature, int64_t token, float value) const {
    std::memcpy(&(*images)[slot()][At(feature, token)], &value, sizeof(value));
  }
  float Get(const Images& images, int64_t feature, int64_t token) const {
    float value;
    std::memcpy(&value, &images[slot()][At(feature, token)], sizeof(value));
    return value;
  }
  Expected Run() const { return RunOracle(graph, op_case.params, op_case.images); }
  std::string Compare(const Expected& expected, const Images& got) const {
    return CompareResults(graph, op_case.params, expected, got);
  }

  OpCase op_case;
  GraphSpec& graph = op_case.graph;
};

TEST(CompareTest, SaysWhatDiffersAndWhere) {
  ProductCase product(TRINE_DTYPE_F32);
  const Expected expected = product.Run();

  Images value = expected.contract;
  value[product.slot()][product.At(3, 1)] ^= std::byte{1};
  EXPECT_EQ(product.Compare(expected, value), "");
  product.graph.numerics = TRINE_NUMERICS_EXACT;
  EXPECT_NE(product.Compare(expected, value).find("at [3,1,0,0] expected 0x"), std::string::npos);

  Images gap = expected.contract;  // changed in the first byte after row 0
  gap[product.slot()][product.At(17, 0)] ^= std::byte{1};
  for (uint32_t numerics : {TRINE_NUMERICS_EXACT, TRINE_NUMERICS_FAST}) {
    product.graph.numerics = numerics;
    EXPECT_NE(product.Compare(expected, gap).find("outside of every output"), std::string::npos);
  }
}

TEST(CompareTest, AFastProductMayRoundActivationsOrNot) {
  for (uint32_t dtype : WeightTypes()) {
    SCOPED_TRACE(dtype);
    // Outliers make the rounding to 8 bits coarse.
    const ProductCase product(dtype, Spread32::kOutliers);
    const Expected expected = product.Run();
    EXPECT_EQ(product.Compare(expected, expected.contract), "");
    EXPECT_EQ(product.Compare(expected, expected.unrounded), "");
    Images wrong = expected.unrounded;
    int64_t largest = 0;
    for (int64_t i = 1; i < 17; ++i) {
      if (std::fabs(product.Get(wrong, i, 1)) > std::fabs(product.Get(wrong, largest, 1))) {
        largest = i;
      }
    }
    product.Set(&wrong, largest, 1, 0.0f);
    EXPECT_NE(product.Compare(expected, wrong).find("beyond the fast tolerance"),
              std::string::npos);
  }
}

TEST(CompareTest, FastResultsAreCanonical) {
  const ProductCase product(TRINE_DTYPE_F32);
  const Expected expected = product.Run();
  for (float odd : {-0.0f, 0x1p-60f, 0x1p60f, INFINITY, NAN}) {
    SCOPED_TRACE(odd);
    Images images = expected.contract;
    product.Set(&images, 2, 1, odd);
    const std::string wrong = product.Compare(expected, images);
    EXPECT_NE(wrong.find("at [2,1,0,0] got 0x"), std::string::npos) << wrong;
    EXPECT_NE(wrong.find("not canonical"), std::string::npos) << wrong;
    EXPECT_EQ(CheckCanonical(product.graph, product.op_case.params, expected, images), wrong);
  }
  Images far = expected.contract;
  product.Set(&far, 2, 1, 1000.0f);
  EXPECT_EQ(CheckCanonical(product.graph, product.op_case.params, expected, far), "");
  EXPECT_NE(product.Compare(expected, far), "");
  far[product.slot()][product.At(17, 0)] ^= std::byte{1};
  EXPECT_NE(CheckCanonical(product.graph, product.op_case.params, expected, far)
                .find("outside of every output"),
            std::string::npos);
}

}  // namespace
}  // namespace trine::conformance
