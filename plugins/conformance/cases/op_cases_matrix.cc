// Cases of matmul, gather_rows and the mixture-of-experts ops, for every weight type.
#include "absl/strings/str_cat.h"
#include "plugins/conformance/cases/op_cases.h"
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
  if (sdk::FindDtype(dtype)->block == 1) {  // without blocks, rows have any length
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

std::vector<OpCase> RouteCases(Random& random, uint32_t scoring) {
  std::vector<OpCase> cases;
  for (const auto& [experts, used, tokens, spread] :
       {std::tuple<int64_t, int64_t, int64_t, Spread32>{1, 1, 1, Spread32::kBell},
        {8, 2, 5, Spread32::kBell},
        {33, 33, 2, Spread32::kOutliers},
        {128, 8, 9, Spread32::kWide},
        {60, 4, 3, Spread32::kZeros}}) {
    CaseBuilder b(random, spread);
    const bool biased = cases.size() % 2 != 0;
    const int64_t t = b.Tokens(tokens, tokens);
    std::vector<uint32_t> in = {b.Input({experts, t})};
    if (biased) in.push_back(b.Weight(TRINE_DTYPE_F32, {experts}));
    const uint32_t ids = b.Output(TRINE_DTYPE_I32, {used, t}), weights = b.Output({used, t});
    const uint32_t flags = cases.size() % 3 == 0 ? 0u : uint32_t{TRINE_MOE_NORMALIZE};
    b.graph().AddOp(TRINE_OP_MOE_ROUTE, in, {ids, weights},
                    trine_moe_route_attr{0, scoring, flags, biased ? 2.5f : 1.0f});
    cases.push_back(b.Take());
  }
  return cases;
}

struct ExpertShape {
  int64_t k, n, experts, used, tokens;
  bool one_row, bias;  // one_row: all experts of a token read the same x
};

OpCase MakeExperts(Random& random, uint32_t dtype, const ExpertShape& s) {
  CaseBuilder b(random, Spread32::kBell);
  const int64_t t = b.Tokens(s.tokens, s.tokens);
  const uint32_t w = b.Weight(dtype, {s.k, s.n, s.experts});
  const uint32_t x = b.Input({s.k, s.one_row ? 1 : s.used, t});
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < s.used * s.tokens; ++i) {
    ids.push_back(static_cast<int32_t>(b.random().Below(s.experts)));
  }
  if (s.used == 3) ids[1] = -1, ids[5] = static_cast<int32_t>(s.experts);  // give zeros
  std::vector<uint32_t> in = {w, x, b.Ints({s.used, t}, ids)};
  if (s.bias) in.push_back(b.Weight(TRINE_DTYPE_F32, {s.n, s.experts}));
  const uint32_t y = b.Output({s.n, s.used, t});
  b.graph().AddOp(TRINE_OP_MOE_MATMUL, in, {y});
  return b.Take();
}

std::vector<OpCase> ExpertCases(Random& random, uint32_t dtype) {
  const int64_t unit = sdk::FindDtype(dtype)->block == 256 ? 256 : 32;
  std::vector<OpCase> cases;
  for (const ExpertShape& s : {ExpertShape{unit, 5, 3, 1, 1, true, false},
                               {2 * unit, 17, 8, 2, 5, true, true},
                               {3 * unit, 3, 4, 3, 9, false, false}}) {
    cases.push_back(MakeExperts(random, dtype, s));
  }
  return cases;
}

std::vector<OpCase> CombineCases(Random& random) {
  std::vector<OpCase> cases;
  for (const auto& [n, used, tokens] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {65, 8, 5}, {300, 3, 33}}) {
    CaseBuilder b(random, used == 3 ? Spread32::kWide : Spread32::kBell, used == 8);
    const int64_t t = b.Tokens(tokens, tokens);
    const uint32_t x = b.Input({n, used, t}), w = b.Input({used, t}), y = b.Output({n, t});
    b.graph().AddOp(TRINE_OP_MOE_COMBINE, {x, w}, {y});
    cases.push_back(b.Take());
  }
  return cases;
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

OpCase MoeMatmulCase(Random& random, uint32_t dtype, int64_t k, int64_t n, int64_t experts) {
  return MakeExperts(random, dtype, {k, n, experts, 2, 4, true, false});
}

void AddMoeGroups(std::vector<OpGroup>* groups) {
  for (const auto& [scoring, name] :
       {std::pair<uint32_t, const char*>{TRINE_MOE_SOFTMAX, "softmax"},
        {TRINE_MOE_SIGMOID, "sigmoid"},
        {TRINE_MOE_SOFTMAX_SELECTED, "softmax_selected"}}) {
    groups->push_back({absl::StrCat("moe_route/", name),
                       [scoring = scoring](Random& r) { return RouteCases(r, scoring); }});
  }
  for (uint32_t dtype : WeightTypes()) {
    groups->push_back({absl::StrCat("moe_matmul/", sdk::DtypeName(dtype)),
                       [dtype](Random& r) { return ExpertCases(r, dtype); }});
  }
  groups->push_back({"moe_combine", CombineCases});
}

std::vector<OpGroup> AllOpGroups() {
  std::vector<OpGroup> groups;
  AddElementWiseGroups(&groups);
  AddMatrixGroups(&groups);
  AddAttentionGroups(&groups);
  AddMoeGroups(&groups);
  return groups;
}

}  // namespace trine::conformance
