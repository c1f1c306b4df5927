// Cases of the mixture-of-experts ops.
#include "absl/strings/str_cat.h"
#include "plugins/conformance/op_cases.h"
#include "trine/sdk/dtype.h"

namespace trine::conformance {
namespace {

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
  if (s.used == 3) ids[1] = -1, ids[5] = static_cast<int32_t>(s.experts);  // zeros
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
