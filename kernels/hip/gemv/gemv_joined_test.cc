// Tests several products of one x in one launch.
#include <memory>
#include <utility>

#include "kernels/hip/gemv/gemv.h"
#include "kernels/hip/ops/column_norm.h"
#include "kernels/hip/ops/ops.h"
#include "kernels/hip/testing/quantized_columns.h"
#include "kernels/hip/testing/weights.h"
#include "kernels/reference/ops.h"

namespace trine::hip {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;
using testing::Form;
using testing::OnDevice;

// The x of all products, quantised for quantised weights; or a norm that makes x.
struct Input {
  Input(int64_t k, int64_t columns, Type weights, Random* random)
      : x(Type::kF32, {k, columns}, 4),
        quantized(quant::IsQuantized(weights) ? k / 32 : 0, columns) {
    x.FillWith(Fill::kUniform, random);
    there = std::make_unique<OnDevice>(x.view());
    if (!quant::IsQuantized(weights)) return;
    q = quantized.columns();
    testing::RunLaunch(QuantizeLaunch(there->tensor(), q));
  }

  // Makes x the result of a norm of one column. Nothing is quantised yet.
  Input(int64_t k, Fill fill, Random* random) : x(Type::kF32, {k, 1}), quantized(k / 32, 1) {
    reference::Tensor raw(Type::kF32, {k, 1}), weight(Type::kF32, {k});
    raw.FillWith(fill, random);
    weight.FillWith(Fill::kUniform, random);
    reference::RmsNorm(raw, &weight.view(), 1e-5f, x, {0, 1});
    there = std::make_unique<OnDevice>(raw.view());
    weight_there = std::make_unique<OnDevice>(weight.view());
    q = quantized.columns();
    norm.x = there->tensor();
    norm.weight = weight_there->tensor();
    norm.weight.constant = true;
    norm.eps = 1e-5f;
    norm.quantized = q;
  }

  reference::Tensor x;
  testing::QuantizedOnDevice quantized;
  std::unique_ptr<OnDevice> there, weight_there;
  QuantizedColumns q;
  Norm norm;
};

// A product with the reference's result in y, and the same product on the device, not yet run.
struct One {
  One(const Form& form, const Input& input, int64_t n, bool biased, Random* random)
      : w(form.type, {input.x.view().dims[0], n, 1}),
        bias(Type::kF32, {n}),
        y(Type::kF32, {n, input.x.view().dims[1]}, 8) {
    w.FillWeights(false, random);
    bias.FillWith(Fill::kUniform, random);
    bias_there = std::make_unique<OnDevice>(bias.view());
    y_there = std::make_unique<OnDevice>(y.view());
    w_there = std::make_unique<testing::WeightsOnDevice>(w.view(), form.packed, biased);
    reference::Matmul(w, input.x, biased ? &bias.view() : nullptr, y, {0, n});
    product.w = w_there->tensor();
    product.w.constant = true;
    product.x = input.there->tensor();
    product.q = input.q;
    if (biased) product.bias = bias_there->tensor();
    product.y = y_there->tensor();
  }

  reference::Tensor w, bias, y;
  std::unique_ptr<OnDevice> bias_there, y_there;
  std::unique_ptr<testing::WeightsOnDevice> w_there;
  Product product;
};

class HipJoinedGemvTest : public ::testing::TestWithParam<Form> {};

TEST_P(HipJoinedGemvTest, ProductsOfEveryLength) {
  const int64_t lengths[] = {5, 16, 1, 9};
  const int64_t k = quant::IsQuantized(GetParam().type) ? 1280 : 293;
  for (const auto& [count, columns] : {std::pair<size_t, int64_t>{2, 1}, {3, 3}, {4, 8}}) {
    for (const uint32_t multiprocessors : {0u, 1000u}) {
      Random random(count);
      const Input input(k, columns, GetParam().type, &random);
      std::vector<std::unique_ptr<One>> ones;
      std::vector<Product> products;
      for (size_t i = 0; i < count; ++i) {
        ones.push_back(std::make_unique<One>(GetParam(), input, lengths[i], i == 1, &random));
        products.push_back(ones.back()->product);
      }
      DeviceShape shape;
      shape.multiprocessors = multiprocessors;
      const Launch launch = GemvLaunch(products, shape);
      testing::UnderEverySchedule([&] {
        for (const auto& one : ones) {
          one->y_there->Write(std::vector<std::byte>(testing::BytesOf(one->y.view())));
        }
        testing::RunLaunch(launch);
        for (const auto& one : ones) {
          ASSERT_EQ(one->y_there->Bytes() == testing::BytesIn(one->y.view()), true);
        }
      });
    }
  }
}

// A norm that writes floats and quantised values, and a product of floats with it.
TEST(HipNormedGemv, WritesTheNormToo) {
  struct Case {
    int64_t k, n;
    Fill fill;
  };
  for (const Case& c : {Case{32, 4, Fill::kUniform},
                        {2048, 128, Fill::kOutlier},
                        {4096, 8, Fill::kWide},
                        {1120, 60, Fill::kTiny}}) {
    Random random(static_cast<uint64_t>(c.k));
    const Input input(c.k, c.fill, &random);
    One one({Type::kF32, false}, input, c.n, c.n == 8, &random);
    for (const bool floats : {true, false}) {
      testing::UnderEverySchedule([&] {
        const reference::Tensor empty(Type::kF32, {c.k, 1});
        const OnDevice y(empty.view());
        Norm norm = input.norm;
        if (floats) norm.y = y.tensor();
        one.y_there->Write(std::vector<std::byte>(testing::BytesOf(one.y.view())));
        ASSERT_TRUE(HasNormedGemv(norm, one.product));
        testing::RunLaunch(NormedGemvLaunch(norm, one.product, {}));
        ASSERT_EQ(one.y_there->Bytes() == testing::BytesIn(one.y.view()), true) << c.k;
        ASSERT_EQ(input.quantized.Wrong(input.x), "");
        ASSERT_EQ(y.Bytes() == testing::BytesIn(floats ? input.x.view() : empty.view()), true);
      });
    }
  }
}

TEST(HipNormedGemv, IsForSomeProductsAlone) {
  Random random(1);
  const Input input(512, Fill::kUniform, &random);
  const One one({Type::kF32, false}, input, 12, false, &random);
  const auto is = [&](const auto& change) {
    Norm norm = input.norm;
    Product product = one.product;
    change(&norm, &product);
    return HasNormedGemv(norm, product);
  };
  EXPECT_TRUE(is([](Norm*, Product*) {}));
  EXPECT_FALSE(is([](Norm* norm, Product*) { norm->centred = true; }));
  EXPECT_FALSE(is([](Norm* norm, Product*) { norm->y.data = norm->x.data + 4; }));
  EXPECT_FALSE(is([](Norm*, Product* product) { product->w.type = Type::kF16; }));
  EXPECT_FALSE(is([](Norm*, Product* product) { product->w.dims[1] = 13; }));
  EXPECT_FALSE(is([](Norm*, Product* product) { product->w.data += 4; }));
  EXPECT_FALSE(is([](Norm*, Product* product) { product->w.strides[1] += 4; }));
  EXPECT_FALSE(is([](Norm*, Product* product) { product->ids = product->w; }));
}

// One column of products of all types that may be mixed, in every order.
TEST(HipMixedGemv, ProductsOfSeveralTypes) {
  constexpr Type kTypes[] = {Type::kQ8_0, Type::kQ4_0, Type::kQ4_K, Type::kQ5_K, Type::kQ6_K};
  const int64_t lengths[] = {5, 16, 1, 9};
  for (size_t begin = 0; begin < std::size(kTypes); ++begin) {
    for (const uint32_t multiprocessors : {0u, 1000u}) {
      for (const size_t count : {2u, 4u}) {
        Random random(begin);
        const Input input(begin == 0 ? 2304 : 1280, 1, Type::kQ8_0, &random);
        std::vector<std::unique_ptr<One>> ones;
        std::vector<Product> products;
        for (size_t i = 0; i < count; ++i) {
          const Type type = kTypes[(begin + i) % std::size(kTypes)];
          ASSERT_TRUE(HasMixedGemv(type, true));
          ones.push_back(
              std::make_unique<One>(Form{type, true}, input, lengths[i], i == 1, &random));
          products.push_back(ones.back()->product);
        }
        DeviceShape shape;
        shape.multiprocessors = multiprocessors;
        const Launch launch = GemvLaunch(products, shape);
        testing::UnderEverySchedule([&] {
          for (const auto& one : ones) {
            one->y_there->Write(std::vector<std::byte>(testing::BytesOf(one->y.view())));
          }
          testing::RunLaunch(launch);
          for (const auto& one : ones) {
            ASSERT_EQ(one->y_there->Bytes() == testing::BytesIn(one->y.view()), true);
          }
        });
      }
    }
  }
  EXPECT_FALSE(HasMixedGemv(Type::kQ8_0, false));
  EXPECT_FALSE(HasMixedGemv(Type::kF16, true));
}

TEST(HipColumnNorm, IsOneOfTheseAlone) {
  Random random(1);
  const Input input(512, Fill::kUniform, &random);
  const auto is = [&](const auto& change) {
    Norm norm = input.norm;
    change(&norm);
    return IsColumnNorm(norm);
  };
  EXPECT_TRUE(is([](Norm*) {}));
  EXPECT_FALSE(is([](Norm* norm) { norm->centred = true; }));
  EXPECT_FALSE(is([](Norm* norm) { norm->x.data += 4; }));
  EXPECT_FALSE(is([](Norm* norm) { norm->weight.data += 8; }));
  EXPECT_FALSE(is([](Norm* norm) { norm->weight = {}; }));
  EXPECT_FALSE(is([](Norm* norm) { norm->bias = norm->weight; }));
  EXPECT_FALSE(is([](Norm* norm) { norm->addend = norm->x; }));
  EXPECT_FALSE(is([](Norm* norm) { norm->y = norm->x; }));
  EXPECT_FALSE(is([](Norm* norm) { norm->quantized = {}; }));
  EXPECT_FALSE(is([](Norm* norm) { norm->x.dims = {512, 2, 1, 1}; }));
  EXPECT_FALSE(is([](Norm* norm) { norm->x.dims = {kMostNormed + 32, 1, 1, 1}; }));
}

// Writes to a place of its own, and to the addend's.
TEST_P(HipJoinedGemvTest, AddsToAResult) {
  const int64_t k = quant::IsQuantized(GetParam().type) ? 512 : 293;
  for (const int64_t columns : {1, 3, 8}) {
    Random random(static_cast<uint64_t>(columns));
    const Input input(k, columns, GetParam().type, &random);
    One one(GetParam(), input, 21, columns == 3, &random);
    reference::Tensor addend(Type::kF32, {21, columns}, 4), sum(Type::kF32, {21, columns}, 8);
    reference::Tensor in_place(Type::kF32, {21, columns}, 4);
    addend.FillWith(Fill::kWide, &random);
    reference::Add(one.y, addend, sum, {0, columns});
    reference::Add(one.y, addend, in_place, {0, columns});
    testing::UnderEverySchedule([&] {
      const OnDevice addend_there(addend.view());
      one.product.addend = addend_there.tensor();
      one.product.y = one.y_there->tensor();
      testing::RunLaunch(GemvLaunch(one.product, {}));
      ASSERT_EQ(one.y_there->Bytes() == testing::BytesIn(sum.view()), true);
      one.product.y = one.product.addend;
      testing::RunLaunch(GemvLaunch(one.product, {}));
      ASSERT_EQ(addend_there.Bytes() == testing::BytesIn(in_place.view()), true);
    });
  }
}

TEST_P(HipJoinedGemvTest, GluOfTwo) {
  if (!HasGluGemv(GetParam().type, GetParam().packed)) return;
  using reference::GluKind;
  for (const GluKind kind : {GluKind::kSilu, GluKind::kGelu, GluKind::kClampedSwiglu}) {
    for (const int64_t columns : {1, 2, 3, 8}) {
      const reference::GluParams params = {kind, 1.702f, 7.0f};
      const bool biased = columns % 2 == 1;
      const int64_t k = columns == 1 ? 2304 : 512, n = 96;
      Random random(static_cast<uint64_t>(columns));
      const Input input(k, columns, GetParam().type, &random);
      One gate(GetParam(), input, n, biased, &random), up(GetParam(), input, n, false, &random);
      reference::Tensor value(Type::kF32, {n, columns});
      reference::Glu(gate.y, up.y, params, value, {0, columns});
      gate.product.y.data = up.product.y.data = nullptr;
      const testing::QuantizedOnDevice to(n / 32, columns);
      const Launch launch =
          GluGemvLaunch(nullptr, gate.product, up.product, params, to.columns(), {});
      testing::UnderEverySchedule([&] {
        testing::RunLaunch(launch);
        ASSERT_EQ(to.Wrong(value), "");
      });
    }
  }
}

TEST_P(HipJoinedGemvTest, GluOfTwoOfANorm) {
  if (!HasGluGemv(GetParam().type, GetParam().packed)) return;
  for (const auto& [k, fill] : {std::pair<int64_t, Fill>{256, Fill::kWide},
                                {1280, Fill::kUniform},
                                {2304, Fill::kOutlier},
                                {4096, Fill::kTiny}}) {
    constexpr int64_t kRows = 96;
    const reference::GluParams params = {reference::GluKind::kSilu, 0.0f, 0.0f};
    Random random(static_cast<uint64_t>(k));
    const Input input(k, fill, &random);
    ASSERT_TRUE(IsColumnNorm(input.norm));
    One gate(GetParam(), input, kRows, k == 256, &random);
    One up(GetParam(), input, kRows, false, &random);
    reference::Tensor value(Type::kF32, {kRows, 1});
    reference::Glu(gate.y, up.y, params, value, {0, 1});
    gate.product.y.data = up.product.y.data = nullptr;
    const testing::QuantizedOnDevice to(kRows / 32, 1);
    const Launch launch =
        GluGemvLaunch(&input.norm, gate.product, up.product, params, to.columns(), {});
    testing::UnderEverySchedule([&] {
      testing::RunLaunch(launch);
      ASSERT_EQ(to.Wrong(value), "");
    });
  }
}

// The ids of experts, x of some tokens, and products of it. Some ids are no experts.
struct Experts {
  Experts(int64_t k, int64_t experts, int64_t used, int64_t tokens, int64_t x_columns, Type weights,
          Random* random)
      : experts(experts),
        x(Type::kF32, {k, x_columns, tokens}, 4),
        ids(Type::kI32, {used, tokens}, 4),
        quantized(quant::IsQuantized(weights) ? k / 32 : 0, x_columns * tokens) {
    x.FillWith(Fill::kUniform, random);
    for (int64_t token = 0; token < tokens; ++token) {
      for (int64_t slot = 0; slot < used; ++slot) {
        const bool none = (token + slot) % 3 == 1;
        reference::I32Row(ids, token)[slot] =
            none ? (slot % 2 == 0 ? -1 : static_cast<int32_t>(experts))
                 : static_cast<int32_t>(random->Below(experts));
      }
    }
    there = std::make_unique<OnDevice>(x.view());
    ids_there = std::make_unique<OnDevice>(ids.view());
    if (!quant::IsQuantized(weights)) return;
    q = quantized.columns();
    testing::RunLaunch(QuantizeLaunch(there->tensor(), q));
  }

  int64_t experts;
  reference::Tensor x, ids;
  testing::QuantizedOnDevice quantized;
  std::unique_ptr<OnDevice> there, ids_there;
  QuantizedColumns q;
};

// A product with experts: the reference's result in y, and the product on the device, not yet run.
struct OneOfExperts {
  OneOfExperts(const Form& form, const Experts& input, int64_t n, bool biased, Random* random)
      : w(form.type, {input.x.view().dims[0], n, input.experts}),
        bias(Type::kF32, {n, input.experts}, 8),
        y(Type::kF32, {n, input.ids.view().dims[0], input.ids.view().dims[1]}, 8) {
    w.FillWeights(false, random);
    bias.FillWith(Fill::kUniform, random);
    bias_there = std::make_unique<OnDevice>(bias.view());
    y_there = std::make_unique<OnDevice>(y.view());
    w_there = std::make_unique<testing::WeightsOnDevice>(w.view(), form.packed, true);
    reference::MoeMatmul(w, input.x, input.ids, biased ? &bias.view() : nullptr, y, {0, n});
    product.w = w_there->tensor();
    product.w.constant = true;
    product.x = input.there->tensor();
    product.q = input.q;
    product.ids = input.ids_there->tensor();
    if (biased) product.bias = bias_there->tensor();
    product.y = y_there->tensor();
  }

  reference::Tensor w, bias, y;
  std::unique_ptr<OnDevice> bias_there, y_there;
  std::unique_ptr<testing::WeightsOnDevice> w_there;
  Product product;
};

TEST_P(HipJoinedGemvTest, ProductsWithExperts) {
  const int64_t k = quant::IsQuantized(GetParam().type) ? 512 : 293;
  for (const bool biased : {false, true}) {
    Random random(biased ? 1 : 2);
    const Experts input(k, 5, 3, 2, biased ? 3 : 1, GetParam().type, &random);
    const OneOfExperts a(GetParam(), input, 11, biased, &random);
    const OneOfExperts b(GetParam(), input, 11, biased, &random);
    const Product both[] = {a.product, b.product};
    const auto fresh = std::vector<std::byte>(testing::BytesOf(a.y.view()));
    testing::UnderEverySchedule([&] {
      a.y_there->Write(fresh);
      b.y_there->Write(fresh);
      testing::RunLaunch(GemvLaunch(both, {}));
      ASSERT_EQ(a.y_there->Bytes() == testing::BytesIn(a.y.view()), true);
      ASSERT_EQ(b.y_there->Bytes() == testing::BytesIn(b.y.view()), true);
    });
  }
}

TEST_P(HipJoinedGemvTest, GluOfTwoWithExperts) {
  if (!HasGluGemv(GetParam().type, GetParam().packed)) return;
  using reference::GluKind;
  struct Case {
    GluKind kind;
    int64_t k, n, used, tokens, x_columns;
  };
  for (const Case& c : {Case{GluKind::kSilu, 2304, 96, 4, 1, 1},
                        {GluKind::kClampedSwiglu, 256, 32, 3, 5, 1},
                        {GluKind::kGelu, 1280, 64, 2, 3, 2}}) {
    const reference::GluParams params = {c.kind, 1.702f, 7.0f};
    Random random(static_cast<uint64_t>(c.k));
    const bool biased = c.tokens == 5;
    const Experts input(c.k, 6, c.used, c.tokens, c.x_columns, GetParam().type, &random);
    OneOfExperts gate(GetParam(), input, c.n, biased, &random);
    OneOfExperts up(GetParam(), input, c.n, biased, &random);
    reference::Tensor value(Type::kF32, {c.n, c.used, c.tokens});
    reference::Glu(gate.y, up.y, params, value, reference::AllRows(value));
    gate.product.y.data = up.product.y.data = nullptr;
    const testing::QuantizedOnDevice to(c.n / 32, c.used * c.tokens);
    const Launch launch =
        GluGemvLaunch(nullptr, gate.product, up.product, params, to.columns(), {});
    testing::UnderEverySchedule([&] {
      testing::RunLaunch(launch);
      ASSERT_EQ(to.Wrong(value), "");
    });
  }
}

// The launch also selects the experts, and writes which.
TEST_P(HipJoinedGemvTest, GluOfTwoWithARoute) {
  if (!HasGluGemv(GetParam().type, GetParam().packed)) return;
  using reference::MoeScoring;
  struct Case {
    MoeScoring scoring;
    int64_t experts, used, tokens, k, n;
    bool biased;
  };
  for (const Case& c : {Case{MoeScoring::kSoftmax, 128, 8, 1, 256, 64, false},
                        {MoeScoring::kSelectedSoftmax, 33, 32, 1, 256, 32, true},
                        {MoeScoring::kSigmoid, 5, 2, 4, 1280, 32, true},
                        {MoeScoring::kSoftmax, 1, 1, 2, 512, 32, false}}) {
    Random random(static_cast<uint64_t>(c.experts));
    const reference::MoeRouteParams route = {c.scoring, !c.biased, c.biased ? 2.5f : 1.0f};
    const reference::GluParams params = {reference::GluKind::kSilu, 0.0f, 0.0f};
    Experts input(c.k, c.experts, c.used, c.tokens, 1, GetParam().type, &random);
    reference::Tensor logits(Type::kF32, {c.experts, c.tokens}, 4), bias(Type::kF32, {c.experts});
    reference::Tensor weights(Type::kF32, {c.used, c.tokens}, 12);
    logits.FillWith(Fill::kUniform, &random);
    bias.FillWith(Fill::kUniform, &random);
    reference::MoeRoute(logits, c.biased ? &bias.view() : nullptr, route, input.ids, weights,
                        {0, c.tokens});
    OneOfExperts gate(GetParam(), input, c.n, c.biased, &random);
    OneOfExperts up(GetParam(), input, c.n, c.biased, &random);
    reference::Tensor value(Type::kF32, {c.n, c.used, c.tokens});
    reference::Glu(gate.y, up.y, params, value, reference::AllRows(value));
    gate.product.y.data = up.product.y.data = nullptr;
    const testing::QuantizedOnDevice to(c.n / 32, c.used * c.tokens);
    const OnDevice logits_there(logits.view()), bias_there(bias.view());
    const OnDevice weights_there(weights.view());
    MoeRoute operands = {
        logits_there.tensor(), {}, route, input.ids_there->tensor(), weights_there.tensor()};
    if (c.biased) operands.selection_bias = bias_there.tensor();
    testing::UnderEverySchedule([&] {
      input.ids_there->Write(std::vector<std::byte>(testing::BytesOf(input.ids.view())));
      weights_there.Write(std::vector<std::byte>(testing::BytesOf(weights.view())));
      testing::RunLaunch(
          RoutedGluGemvLaunch(operands, gate.product, up.product, params, to.columns(), {}));
      ASSERT_EQ(to.Wrong(value), "") << c.experts;
      ASSERT_EQ(input.ids_there->Bytes() == testing::BytesIn(input.ids.view()), true) << c.experts;
      ASSERT_EQ(weights_there.Bytes() == testing::BytesIn(weights.view()), true) << c.experts;
    });
  }
}

// Writes to a place of its own, and to the addend's.
TEST_P(HipJoinedGemvTest, CombinesExperts) {
  struct Case {
    int64_t k, n, used, tokens;
  };
  for (const Case& c : {Case{256, 21, 8, 1}, {1280, 5, 3, 4}, {768, 6, 17, 2}, {2304, 4, 1, 1}}) {
    if (!HasCombineGemv(GetParam().type, GetParam().packed, c.k)) continue;
    Random random(static_cast<uint64_t>(c.k));
    const bool biased = c.tokens > 1;
    const Experts input(c.k, 6, c.used, c.tokens, c.used, GetParam().type, &random);
    OneOfExperts down(GetParam(), input, c.n, biased, &random);
    down.product.y.data = nullptr;
    reference::Tensor weights(Type::kF32, {c.used, c.tokens}, 8);
    reference::Tensor y(Type::kF32, {c.n, c.tokens}, 4), addend(Type::kF32, {c.n, c.tokens}, 12);
    reference::Tensor sum(Type::kF32, {c.n, c.tokens}, 12);
    weights.FillWith(Fill::kUniform, &random);
    addend.FillWith(Fill::kWide, &random);
    const auto fresh = testing::BytesIn(y.view());
    reference::MoeCombine(down.y, weights, y, reference::AllRows(y));
    reference::Add(y, addend, sum, reference::AllRows(sum));
    const OnDevice weights_there(weights.view()), y_there(y.view());
    testing::UnderEverySchedule([&] {
      const OnDevice addend_there(addend.view());
      const auto run = [&](const Tensor& added, const Tensor& to) {
        testing::RunLaunch(CombineGemvLaunch(down.product, weights_there.tensor(), added, to, {}));
      };
      y_there.Write(fresh);
      run({}, y_there.tensor());
      ASSERT_EQ(y_there.Bytes() == testing::BytesIn(y.view()), true) << c.k;
      run(addend_there.tensor(), addend_there.tensor());
      ASSERT_EQ(addend_there.Bytes() == testing::BytesIn(sum.view()), true) << c.k;
    });
  }
}

TEST(HipCombineGemv, IsForShortPackedRows) {
  EXPECT_TRUE(HasCombineGemv(Type::kQ4_K, true, 3072));
  EXPECT_FALSE(HasCombineGemv(Type::kQ4_K, true, 3328));
  EXPECT_FALSE(HasCombineGemv(Type::kQ4_K, false, 768));
  EXPECT_FALSE(HasCombineGemv(Type::kF16, true, 768));
}

INSTANTIATE_TEST_SUITE_P(Forms, HipJoinedGemvTest, ::testing::ValuesIn(testing::AllForms()),
                         testing::NameOf);

}  // namespace
}  // namespace trine::hip
