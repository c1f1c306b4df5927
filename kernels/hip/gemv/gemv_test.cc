#include "kernels/hip/gemv/gemv.h"

#include "kernels/hip/ops/ops.h"
#include "kernels/hip/testing/weights.h"
#include "kernels/reference/ops.h"

namespace trine::hip {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;
using testing::DeviceMemory;
using testing::Form;
using testing::OnDevice;

struct GemvCase {
  int64_t k = 32, n = 9, m = 1;
  bool bias = false;
  uint32_t multiprocessors = 1000;  // with 1, 32 rows are many; with 0, any rows are very many
  bool gaps = false;                // the smallest possible gaps between rows of weights
  bool any_scale = false;           // weights of every magnitude
  Fill fill = Fill::kUniform;
  // For moe_matmul.
  int64_t experts = 0, used = 1, x_columns = 1;
};

void Check(const Form& form, const GemvCase& c) {
  SCOPED_TRACE("k " + std::to_string(c.k) + ", n " + std::to_string(c.n) + ", m " +
               std::to_string(c.m) + (c.bias ? ", bias" : "") + (c.gaps ? ", gaps" : ""));
  Random random(static_cast<uint64_t>(c.k * 64 + c.n * 8 + c.m));
  const bool moe = c.experts > 0;
  const int64_t experts = moe ? c.experts : 1;
  reference::Tensor w(form.type, {c.k, c.n, experts},
                      c.gaps ? testing::BlockAlignment(form.type) : 0);
  w.FillWeights(c.any_scale, &random);
  // An even number of columns is divided into two dimensions.
  const int64_t m2 = moe ? c.m : c.m % 2 == 0 ? 2 : 1, m1 = moe ? c.used : c.m / m2;
  reference::Tensor x(Type::kF32, {c.k, moe ? c.x_columns : m1, m2}, 4);
  reference::Tensor bias(Type::kF32, {c.n, experts}, 8), y(Type::kF32, {c.n, m1, m2}, 12);
  x.FillWith(c.fill, &random);
  bias.FillWith(Fill::kUniform, &random);
  reference::Tensor ids(Type::kI32, {c.used, c.m}, 4);
  for (int64_t token = 0; moe && token < c.m; ++token) {
    for (int64_t slot = 0; slot < c.used; ++slot) {  // two of the possible ids are no experts
      reference::I32Row(ids, token)[slot] = static_cast<int32_t>(random.Below(c.experts + 2)) - 1;
    }
  }
  const auto fresh = testing::BytesIn(y.view());
  const OnDevice x_there(x.view()), bias_there(bias.view()), ids_there(ids.view());
  const OnDevice y_there(y.view());
  const testing::WeightsOnDevice w_there(w.view(), form.packed, c.gaps);
  const reference::View* b = c.bias ? &bias.view() : nullptr;
  if (moe) {
    reference::MoeMatmul(w, x, ids, b, y, {0, c.n});
  } else {
    reference::Matmul(w, x, b, y, {0, c.n});
  }
  const auto want = testing::BytesIn(y.view());

  Product product;
  product.w = w_there.tensor();
  product.x = x_there.tensor();
  product.y = y_there.tensor();
  if (c.bias) product.bias = bias_there.tensor();
  if (moe) product.ids = ids_there.tensor();
  const int64_t blocks = c.k / 32, columns = product.x.rows();
  DeviceMemory quantized(QuantizedBytes(blocks, columns));
  if (quant::IsQuantized(form.type)) {
    product.q = QuantizedAt(quantized.data(), blocks, columns);
    testing::RunLaunch(QuantizeLaunch(product.x, product.q));
  }
  ASSERT_EQ(WhyNotGemv(product), "");
  DeviceShape shape;
  shape.multiprocessors = c.multiprocessors;
  const Launch launch = GemvLaunch(product, shape);
  testing::UnderEverySchedule([&] {
    y_there.Write(fresh);
    testing::RunLaunch(launch);
    ASSERT_EQ(y_there.Bytes() == want, true);
  });
}

class HipGemvTest : public ::testing::TestWithParam<Form> {
 protected:
  bool IsFloat() const { return !quant::IsQuantized(GetParam().type); }
  bool IsSuper() const {
    return quant::Traits(GetParam().type).block_values == quant::kSuperValues;
  }
};

TEST_P(HipGemvTest, RowsOfEveryLength) {
  // One block; less than a pass of 32; a little more than one; several, with one left over.
  const std::vector<int64_t> lengths =
      IsFloat()   ? std::vector<int64_t>{1, 31, 37, 64, 128, 300, 512, 1093, 2304}
      : IsSuper() ? std::vector<int64_t>{256, 1280, 2304, 3328, 9472}
                  : std::vector<int64_t>{32, 224, 320, 1024, 1056, 2304, 3104, 4128, 9472};
  for (const int64_t k : lengths) {
    for (const uint32_t multiprocessors : {1000u, 1u, 0u}) {
      GemvCase c;
      c.k = k;
      c.n = multiprocessors == 1 ? 33 : 5;
      c.bias = multiprocessors == 0;
      c.gaps = multiprocessors == 0;
      c.multiprocessors = multiprocessors;
      Check(GetParam(), c);
    }
  }
}

TEST_P(HipGemvTest, EveryNumberOfColumns) {
  for (int64_t m = 1; m <= 9; ++m) {
    GemvCase c;
    c.k = IsFloat() ? 293 : 1280;
    c.n = m % 2 == 0 ? 11 : 1;
    c.m = m;
    c.bias = m % 3 == 0;
    c.gaps = m % 2 == 0;
    if (m % 4 == 0) c.multiprocessors = 0;
    Check(GetParam(), c);
  }
}

TEST_P(HipGemvTest, NumbersOfEverySize) {
  for (const Fill fill : quant::kAllFills) {
    GemvCase c;
    c.k = 512;
    c.m = 2;
    c.bias = true;
    c.any_scale = true;
    c.fill = fill;
    Check(GetParam(), c);
  }
}

TEST_P(HipGemvTest, Experts) {
  for (const int64_t x_columns : {1, 3}) {
    GemvCase c;
    c.k = IsFloat() ? 160 : 512;
    c.n = 6;
    c.m = 4;
    c.experts = 4;
    c.used = 3;
    c.x_columns = x_columns;
    c.bias = x_columns == 1;
    c.gaps = x_columns == 1;
    Check(GetParam(), c);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, HipGemvTest, ::testing::ValuesIn(testing::AllForms()),
                         testing::NameOf);

TEST(HipGemvTest, NothingToDo) {
  Product product;
  product.w.dims = {64, 0, 1, 1};
  product.x.dims = {64, 2, 1, 1};
  product.y.dims = {0, 2, 1, 1};
  EXPECT_TRUE(GemvLaunch(product, {}).empty());
  product.w.dims = {64, 3, 1, 1};
  product.x.dims = {64, 0, 1, 1};
  product.y.dims = {3, 0, 1, 1};
  EXPECT_TRUE(GemvLaunch(product, {}).empty());
}

TEST(HipGemvTest, RowsOfNoValuesGiveTheBias) {
  for (const Type type : {Type::kF16, Type::kQ8_0}) {
    GemvCase c;
    c.k = 0;
    c.bias = true;
    Check({type, false}, c);
  }
}

TEST(HipGemvTest, SaysWhatItCanNot) {
  Product product;
  product.w.type = Type::kQ8_KV;
  EXPECT_EQ(WhyNotGemv(product), "q8_kv is no type of weights");
  product.w.type = Type::kQ4_0;
  product.w.dims[0] = 40;
  EXPECT_EQ(WhyNotGemv(product), "a row is no whole number of blocks");
  product.w.dims[0] = 64;
  EXPECT_EQ(WhyNotGemv(product), "the activations are not quantised");
  product.w.packed = true;
  product.w.strides[1] = 36;
  EXPECT_EQ(WhyNotGemv(product), "packed rows begin at multiples of 16 bytes");
  product.w.type = Type::kQ5_1;
  EXPECT_EQ(WhyNotGemv(product), "q5_1 has no packed layout");
}

}  // namespace
}  // namespace trine::hip
