// Several products of one x in one launch.
#include <memory>
#include <utility>

#include "kernels/hip/activations.h"
#include "kernels/hip/gemv.h"
#include "kernels/hip/gemv_glu.h"
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

// The x of all, quantised for weights that ask for it.
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

  reference::Tensor x;
  testing::QuantizedOnDevice quantized;
  std::unique_ptr<OnDevice> there;
  QuantizedColumns q;
};

// A product with the reference's result in y, and one on the device where nothing is yet.
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
      const Launch launch = GluGemvLaunch(gate.product, up.product, params, to.columns(), {});
      testing::UnderEverySchedule([&] {
        testing::RunLaunch(launch);
        ASSERT_EQ(to.Wrong(value), "");
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, HipJoinedGemvTest, ::testing::ValuesIn(testing::AllForms()),
                         testing::NameOf);

}  // namespace
}  // namespace trine::hip
