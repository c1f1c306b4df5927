// Cases of the ops that work value by value or row by row.
#include "absl/strings/str_cat.h"
#include "plugins/conformance/cases/op_cases.h"
#include "trine/sdk/dtype.h"

namespace trine::conformance {
namespace {

struct Shape {
  int64_t n, heads, tokens, max_tokens;
  Spread32 spread;
  bool gapped, in_place;
};

// Shapes with widths around vector sizes, fewer tokens than the maximum, and each kind of data.
constexpr Shape kShapes[] = {
    {1, 1, 1, 1, Spread32::kBell, false, false},     {17, 1, 5, 9, Spread32::kWide, false, false},
    {64, 3, 2, 2, Spread32::kOutliers, false, true}, {100, 2, 9, 33, Spread32::kTiny, true, false},
    {255, 1, 33, 33, Spread32::kWide, true, true},   {513, 1, 3, 3, Spread32::kZeros, false, false},
    {1030, 1, 2, 4, Spread32::kBell, false, false},
};

// Makes cases x -> y. `finish(builder, shape, x, y, tokens)` adds the op and its other inputs.
template <class Finish>
std::vector<OpCase> RowCases(Random& random, Finish finish) {
  std::vector<OpCase> cases;
  for (const Shape& s : kShapes) {
    CaseBuilder b(random, s.spread, s.gapped);
    const int64_t t = b.Tokens(s.tokens, s.max_tokens);
    const std::vector<int64_t> dims = {s.n, s.heads, t};
    const uint32_t x = b.Input(dims);
    const uint32_t y = s.in_place ? b.graph().AddAlias(x) : b.Output(dims);
    finish(b, s, x, y, t);
    cases.push_back(b.Take());
  }
  return cases;
}

std::vector<OpCase> BinaryCases(Random& random, uint32_t kind) {
  auto cases =
      RowCases(random, [kind](CaseBuilder& b, const Shape& s, uint32_t x, uint32_t y, int64_t t) {
        const uint32_t other = b.Input({s.n, s.heads, t});
        b.graph().AddOp(kind, {x, other}, {y});
      });
  // One row for all, one value for each head, one value for all, one row for each token.
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{33, 1, 1}, {1, 3, 1}, {1, 1, 1}, {33, 1, 7}}) {
    CaseBuilder b(random, Spread32::kBell);
    const uint32_t x = b.Input({33, 3, 7}), other = b.Input(dims), y = b.Output({33, 3, 7});
    b.graph().AddOp(kind, {x, other}, {y});
    cases.push_back(b.Take());
  }
  return cases;
}

std::vector<OpCase> NormCases(Random& random, uint32_t kind) {
  int count = 0;
  return RowCases(random, [&](CaseBuilder& b, const Shape& s, uint32_t x, uint32_t y, int64_t) {
    const bool weight = count % 3 != 0, bias = kind == TRINE_OP_LAYER_NORM && count % 2 != 0;
    ++count;
    std::vector<uint32_t> in = {x};
    if (weight || bias) in.push_back(weight ? b.Weight(TRINE_DTYPE_F32, {s.n}) : TRINE_NONE);
    if (bias) in.push_back(b.Weight(TRINE_DTYPE_F32, {s.n}));
    b.graph().AddOp(kind, in, {y}, trine_norm_attr{0, count % 2 != 0 ? 1e-5f : 1e-6f});
  });
}

std::vector<OpCase> GluCases(Random& random, uint32_t activation) {
  return RowCases(
      random, [activation](CaseBuilder& b, const Shape& s, uint32_t x, uint32_t y, int64_t t) {
        const uint32_t up = b.Input({s.n, s.heads, t});
        b.graph().AddOp(TRINE_OP_GLU, {x, up}, {y}, trine_glu_attr{0, activation, 1.702f, 7.0f});
      });
}

std::vector<OpCase> CopyCases(Random& random, uint32_t from, uint32_t to) {
  std::vector<OpCase> cases;
  for (const Shape& s : kShapes) {
    if (s.in_place) continue;
    CaseBuilder b(random, s.spread, s.gapped);
    const int64_t t = b.Tokens(s.tokens, s.max_tokens);
    const auto block = static_cast<int64_t>(sdk::FindDtype(from)->block);
    const std::vector<int64_t> dims = {block == 1 ? s.n : 2 * block, s.heads, t};
    // Puts x into a state slot, as in a copy of a cache block, where x is no weight.
    const uint32_t x = b.Cache(from, dims);
    b.graph().AddOp(TRINE_OP_COPY, {x}, {b.Output(to, dims)});
    cases.push_back(b.Take());
  }
  return cases;
}

std::vector<OpCase> TopKCases(Random& random) {
  std::vector<OpCase> cases;
  for (const auto& [n, k, tokens, spread] :
       {std::tuple<int64_t, int64_t, int64_t, Spread32>{1, 1, 1, Spread32::kBell},
        {17, 3, 5, Spread32::kWide},
        {64, 64, 2, Spread32::kZeros},
        {1000, 40, 3, Spread32::kBell},
        {4099, 1, 2, Spread32::kOutliers}}) {
    CaseBuilder b(random, spread);
    const int64_t t = b.Tokens(tokens, tokens);
    const uint32_t x = b.Input({n, t});
    const uint32_t ids = b.Output(TRINE_DTYPE_I32, {k, t}), values = b.Output({k, t});
    b.graph().AddOp(TRINE_OP_TOP_K, {x}, {ids, values});
    cases.push_back(b.Take());
  }
  return cases;
}

}  // namespace

void AddElementWiseGroups(std::vector<OpGroup>* groups) {
  const auto add = [&](const std::string& name, auto make) { groups->push_back({name, make}); };
  add("add", [](Random& r) { return BinaryCases(r, TRINE_OP_ADD); });
  add("mul", [](Random& r) { return BinaryCases(r, TRINE_OP_MUL); });
  for (const auto& [kind, name] :
       {std::pair<uint32_t, const char*>{TRINE_OP_SCALE, "scale"}, {TRINE_OP_SOFTCAP, "softcap"}}) {
    add(name, [kind = kind](Random& r) {
      return RowCases(r, [kind](CaseBuilder& b, const Shape&, uint32_t x, uint32_t y, int64_t) {
        const float factor = kind == TRINE_OP_SCALE ? -0.7071068f : 30.0f;
        b.graph().AddOp(kind, {x}, {y}, trine_scale_attr{0, factor});
      });
    });
  }
  for (const auto& [act, name] : {std::pair<uint32_t, const char*>{TRINE_ACT_SILU, "silu"},
                                  {TRINE_ACT_GELU, "gelu"},
                                  {TRINE_ACT_RELU, "relu"},
                                  {TRINE_ACT_TANH, "tanh"}}) {
    add(absl::StrCat("activation/", name), [act = act](Random& r) {
      return RowCases(r, [act](CaseBuilder& b, const Shape&, uint32_t x, uint32_t y, int64_t) {
        b.graph().AddOp(TRINE_OP_ACTIVATION, {x}, {y}, trine_activation_attr{0, act});
      });
    });
  }
  add("glu/silu", [](Random& r) { return GluCases(r, TRINE_ACT_SILU); });
  add("glu/gelu", [](Random& r) { return GluCases(r, TRINE_ACT_GELU); });
  add("glu/swiglu_clamped", [](Random& r) { return GluCases(r, TRINE_ACT_SWIGLU_CLAMPED); });
  add("rms_norm", [](Random& r) { return NormCases(r, TRINE_OP_RMS_NORM); });
  add("layer_norm", [](Random& r) { return NormCases(r, TRINE_OP_LAYER_NORM); });
  for (uint32_t from : {TRINE_DTYPE_F32, TRINE_DTYPE_F16, TRINE_DTYPE_BF16}) {
    for (uint32_t to : {TRINE_DTYPE_F32, TRINE_DTYPE_F16, TRINE_DTYPE_BF16}) {
      add(absl::StrCat("copy/", sdk::DtypeName(from), "-", sdk::DtypeName(to)),
          [from, to](Random& r) { return CopyCases(r, from, to); });
    }
  }
  add("copy/q8_kv", [](Random& r) { return CopyCases(r, TRINE_DTYPE_Q8_KV, TRINE_DTYPE_Q8_KV); });
  add("top_k", TopKCases);
}

}  // namespace trine::conformance
