// Cases of matmul and gather_rows, for every weight type.
#include "absl/strings/str_cat.h"
#include "plugins/conformance/op_cases.h"
#include "trine/sdk/dtype.h"
#include "trine/sdk/op_rules.h"

namespace trine::conformance {
namespace {

struct MatrixShape {
  int64_t k, n, tokens, max_tokens;
  bool bias, gapped;
  Spread32 spread;
};

std::vector<MatrixShape> ShapesFor(uint32_t dtype) {
  constexpr auto kBell = Spread32::kBell, kWide = Spread32::kWide;
  if (sdk::FindDtype(dtype)->block == 256) {
    return {{256, 1, 1, 1, false, false, kBell},
            {256, 65, 5, 9, true, false, Spread32::kOutliers},
            {512, 17, 2, 2, false, true, kWide},
            {768, 3, 33, 33, false, false, kBell},
            {2304, 17, 1, 4, false, false, kBell},
            {256, 3, 9, 9, true, false, Spread32::kTiny},
            {512, 5, 2, 2, true, false, Spread32::kZeros}};
  }
  std::vector<MatrixShape> shapes = {{32, 1, 1, 1, false, false, kBell},
                                     {96, 17, 5, 9, true, false, Spread32::kOutliers},
                                     {256, 65, 2, 2, false, false, kWide},
                                     {288, 3, 33, 33, false, true, kBell},
                                     {1056, 17, 1, 4, false, false, kBell},
                                     {64, 130, 9, 9, true, false, Spread32::kTiny},
                                     {160, 5, 2, 2, true, false, Spread32::kZeros}};
  if (sdk::FindDtype(dtype)->block == 1) {  // no block to fill: any length
    shapes.push_back({1, 3, 2, 2, false, false, kBell});
    shapes.push_back({7, 17, 5, 5, true, false, kWide});
    shapes.push_back({45, 2, 3, 3, false, false, kBell});
  }
  return shapes;
}

OpCase MakeMatmul(Random& random, uint32_t dtype, const MatrixShape& s) {
  CaseBuilder b(random, s.spread, s.gapped);
  const int64_t t = b.Tokens(s.tokens, s.max_tokens);
  const uint32_t w = b.Weight(dtype, {s.k, s.n});
  const uint32_t x = b.Input({s.k, t});
  std::vector<uint32_t> in = {w, x};
  if (s.bias) in.push_back(b.Weight(TRINE_DTYPE_F32, {s.n}));
  const uint32_t y = b.Output({s.n, t});
  b.graph().AddOp(TRINE_OP_MATMUL, in, {y});
  return b.Take();
}

OpCase MakeGather(Random& random, uint32_t dtype, int64_t k, int64_t rows, int64_t tokens,
                  bool gapped) {
  CaseBuilder b(random, Spread32::kBell, gapped);
  const int64_t t = b.Tokens(tokens, tokens + 2);
  const uint32_t table = b.Weight(dtype, {k, rows});
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < tokens + 2; ++i) {
    ids.push_back(static_cast<int32_t>(b.random().Below(rows)));
  }
  ids[0] = static_cast<int32_t>(rows - 1);
  // An id outside of the table gives zeros, never a read beyond it.
  if (tokens > 2) ids[1] = static_cast<int32_t>(rows), ids[2] = -1;
  const uint32_t id = b.Ints({t}, ids);
  const uint32_t y = b.Output({k, t});
  b.graph().AddOp(TRINE_OP_GATHER_ROWS, {table, id}, {y});
  return b.Take();
}

}  // namespace

const std::vector<uint32_t>& WeightTypes() {
  static const auto* types = new std::vector<uint32_t>{
      TRINE_DTYPE_F32,   TRINE_DTYPE_F16,    TRINE_DTYPE_BF16,   TRINE_DTYPE_Q4_0,
      TRINE_DTYPE_Q4_1,  TRINE_DTYPE_Q5_0,   TRINE_DTYPE_Q5_1,   TRINE_DTYPE_Q8_0,
      TRINE_DTYPE_Q2_K,  TRINE_DTYPE_Q3_K,   TRINE_DTYPE_Q4_K,   TRINE_DTYPE_Q5_K,
      TRINE_DTYPE_Q6_K,  TRINE_DTYPE_IQ4_NL, TRINE_DTYPE_IQ4_XS, TRINE_DTYPE_TQ1_0,
      TRINE_DTYPE_TQ2_0, TRINE_DTYPE_MXFP4};
  return *types;
}

OpCase MatmulCase(Random& random, uint32_t dtype, int64_t k, int64_t n, int64_t tokens, bool bias,
                  Spread32 spread, bool gapped) {
  return MakeMatmul(random, dtype, {k, n, tokens, tokens, bias, gapped, spread});
}

void AddMatrixGroups(std::vector<OpGroup>* groups) {
  for (uint32_t dtype : WeightTypes()) {
    groups->push_back({absl::StrCat("matmul/", sdk::DtypeName(dtype)), [dtype](Random& random) {
                         std::vector<OpCase> cases;
                         for (const MatrixShape& s : ShapesFor(dtype)) {
                           cases.push_back(MakeMatmul(random, dtype, s));
                         }
                         return cases;
                       }});
  }
  for (uint32_t dtype : WeightTypes()) {
    groups->push_back(
        {absl::StrCat("gather_rows/", sdk::DtypeName(dtype)), [dtype](Random& random) {
           const int64_t k = sdk::FindDtype(dtype)->block == 256 ? 512 : 96;
           std::vector<OpCase> cases;
           cases.push_back(MakeGather(random, dtype, k, 1, 1, false));
           cases.push_back(MakeGather(random, dtype, k, 33, 9, false));
           cases.push_back(MakeGather(random, dtype, k, 7, 5, true));
           return cases;
         }});
  }
}

}  // namespace trine::conformance
