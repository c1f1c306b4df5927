#include "kernels/hip/gemm/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/hip/gemm/gemm_choice.h"
#include "kernels/hip/ops/ops.h"
#include "kernels/hip/testing/gpu_fixture.h"
#include "kernels/quant/packed_rows.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/test_tensor.h"

namespace trine::hip {
namespace {

using quant::Type;
using testing::DeviceMemory;
using testing::OnDevice;

struct GemmCase {
  Type type = Type::kQ8_0;
  bool packed = false;
  int64_t k = 256, n = 33, used = 1, tokens = 9;
  int64_t experts = 0;  // 0: a plain matmul
  bool x_repeated = false, bias = false, any_scale = false;
  quant::Fill fill = quant::Fill::kUniform;
};

std::string Name(const GemmCase& c) {
  return std::string(quant::Traits(c.type).name) + (c.packed ? " packed" : "") + " k " +
         std::to_string(c.k) + " n " + std::to_string(c.n) + " columns " + std::to_string(c.used) +
         "x" + std::to_string(c.tokens) + " experts " + std::to_string(c.experts);
}

// A matrix of weights on the device, perhaps packed.
class Weights {
 public:
  Weights(const reference::Tensor& from, bool packed) : plain_(from.view()) {
    if (!packed) return;
    const reference::View& view = from.view();
    uint64_t row_bytes = 0;
    EXPECT_TRUE(quant::PackedRowBytes(view.type, view.dims[0], &row_bytes));
    const int64_t rows = reference::Rows(view);
    std::vector<std::byte> bytes(row_bytes * static_cast<uint64_t>(rows));
    for (int64_t r = 0; r < rows; ++r) {
      quant::PackRow(view.type, view.dims[0], reference::RowAt(view, r),
                     bytes.data() + static_cast<uint64_t>(r) * row_bytes);
    }
    packed_ = std::make_unique<DeviceMemory>(bytes.size());
    packed_->Write(bytes.data());
    row_bytes_ = static_cast<int64_t>(row_bytes);
  }

  Tensor tensor() const {
    Tensor t = plain_.tensor();
    if (packed_ == nullptr) return t;
    t.data = packed_->data();
    t.packed = true;
    t.strides[1] = row_bytes_;
    t.strides[2] = row_bytes_ * t.dims[1];
    return t;
  }

 private:
  OnDevice plain_;
  std::unique_ptr<DeviceMemory> packed_;
  int64_t row_bytes_ = 0;
};

// Runs a case for each shape of a device, against the reference.
void Check(const GemmCase& c, const std::vector<DeviceShape>& shapes) {
  SCOPED_TRACE(Name(c));
  quant::Random random(static_cast<uint64_t>(c.k * 31 + c.n * 7 + c.tokens));
  const int64_t experts = std::max<int64_t>(1, c.experts);
  const int64_t x_used = c.x_repeated ? 1 : c.used;
  reference::Tensor w(c.type, {c.k, c.n, experts}, c.type == Type::kF32 ? 4 : 0);
  reference::Tensor x(Type::kF32, {c.k, x_used, c.tokens}, 4);
  reference::Tensor bias(Type::kF32, {c.n, experts}, 8);
  reference::Tensor ids(Type::kI32, {c.used, c.tokens}, 4);
  reference::Tensor y(Type::kF32, {c.n, c.used, c.tokens}, 12);
  w.FillWeights(c.any_scale, &random);
  x.FillWith(c.fill, &random);
  bias.FillWith(quant::Fill::kUniform, &random);
  y.FillWith(quant::Fill::kUniform, &random);
  for (int64_t t = 0; t < c.tokens; ++t) {
    for (int64_t s = 0; s < c.used; ++s) {
      // The first experts have more columns than others, some have none; a few ids are no expert.
      int64_t id = random.Below(experts + 1);
      if (id > 0) id = random.Below(id + 1);
      if (random.Below(9) == 0) id = random.Below(2) == 0 ? -1 : experts;
      reference::I32Row(ids.view(), t)[s] = static_cast<int32_t>(id);
    }
  }

  const Weights on_weights(w, c.packed);
  const OnDevice on_x(x.view()), on_bias(bias.view()), on_ids(ids.view());
  Product product;
  product.w = on_weights.tensor();
  product.x = on_x.tensor();
  if (c.bias) product.bias = on_bias.tensor();
  if (c.experts > 0) product.ids = on_ids.tensor();
  const int64_t blocks = c.k / 32, columns = x_used * c.tokens;
  DeviceMemory quantized(QuantizedBytes(blocks, columns));
  if (quant::IsQuantized(c.type)) {
    product.q = QuantizedAt(quantized.data(), blocks, columns);
    testing::RunLaunch(QuantizeLaunch(product.x, product.q));
  }
  const std::vector<std::byte> before = testing::BytesIn(y.view());

  const reference::View* b = c.bias ? &bias.view() : nullptr;
  if (c.experts > 0) {
    reference::MoeMatmul(w, x, ids, b, y, {0, c.n});
  } else {
    reference::Matmul(w, x, b, y, {0, c.n});
  }
  const std::vector<std::byte> want = testing::BytesIn(y.view());
  std::copy(before.begin(), before.end(), y.view().data);

  const auto check = [&](const TiledGemm& kernel) {
    const OnDevice on_y(y.view());
    product.y = on_y.tensor();
    ASSERT_EQ(WhyNotGemm(product), "");
    const DeviceMemory scratch(GemmScratchBytes(product));
    std::vector<Launch> launches;
    AddGemmBy(kernel, product, scratch.data(), &launches);
    testing::RunLaunches(launches);
    ASSERT_TRUE(on_y.Bytes() == want);
  };
  product.y.dims = {c.n, c.used, c.tokens, 1};
  for (const DeviceShape& shape : shapes) {
    SCOPED_TRACE("unit " + std::to_string(static_cast<int>(shape.unit)) + ", processors " +
                 std::to_string(shape.multiprocessors));
    check(ChooseGemm(product, shape));
    if (shape.unit != MatrixUnit::kMma || shape.multiprocessors != 1) continue;
    if (!c.packed || product.q.by_class == nullptr) continue;
    for (const TiledGemms& kernels : {ByClassGemm(c.type), ByWarpGemm(c.type)}) {
      for (const TiledGemm& kernel : kernels) {
        SCOPED_TRACE("tiles of " + std::to_string(kernel.tile.rows) + " x " +
                     std::to_string(kernel.tile.columns));
        ASSERT_NE(kernel.kernel, nullptr);
        ASSERT_GE(kernel.tile.columns, kLeastTileColumns);
        check(kernel);
      }
    }
  }
}

// Large tiles fill one multiprocessor; very many multiprocessors call for small tiles.
std::vector<DeviceShape> ShapesFor(Type type) {
  if (!quant::IsQuantized(type)) return {DeviceShape{}};
  std::vector<DeviceShape> shapes;
  std::vector<MatrixUnit> units = {MatrixUnit::kDot4, MatrixUnit::kMma};
#if defined(TRINE_GPU_HOST)
  // AMD's units that work on waves of the current size.
  if (emulator::CurrentSettings().wave == 64) {
    units.insert(units.end(), {MatrixUnit::kMfma, MatrixUnit::kMfmaGfx942});
  } else {
    units.insert(units.end(), {MatrixUnit::kWmma, MatrixUnit::kWmmaGfx12});
  }
#endif
  for (const MatrixUnit unit : units) {
    for (const uint32_t processors : {1u, 100000u}) shapes.push_back({processors, 48 << 10, unit});
  }
  return shapes;
}

// Returns every quantised type, in every form that it has.
std::vector<GemmCase> QuantizedForms() {
  std::vector<GemmCase> cases;
  for (const Type type : quant::kAllTypes) {
    if (!quant::IsQuantized(type) || type == Type::kQ8_KV) continue;
    for (const bool packed : {false, true}) {
      if (packed && !quant::HasPackedLayout(type)) continue;
      GemmCase c;
      c.type = type;
      c.packed = packed;
      cases.push_back(c);
    }
  }
  return cases;
}

void CheckUnderEverySchedule(const GemmCase& c) {
  testing::UnderEverySchedule([&] {
    if (!::testing::Test::HasFatalFailure()) Check(c, ShapesFor(c.type));
  });
}

// Runs `body` under one schedule for each size of waves, because units depend on it.
void InEitherWave(const std::function<void()>& body) {
#if defined(TRINE_GPU_HOST)
  emulator::Configure({64, emulator::Order::kForward, 1});
  body();
  emulator::Configure({});
#endif
  body();
}

TEST(HipGemm, EveryTypeAndForm) {
  for (GemmCase c : QuantizedForms()) {
    c.k = quant::Traits(c.type).block_values == 256 ? 512 : 13 * 32;
    c.n = 33;
    c.tokens = 35;
    c.any_scale = true;
    CheckUnderEverySchedule(c);
  }
}

TEST(HipGemm, LargeAndSmallValuesAndABias) {
  for (GemmCase c : QuantizedForms()) {
    c.k = quant::Traits(c.type).block_values == 256 ? 256 : 32;
    c.n = 5;
    c.tokens = 37;
    c.bias = true;
    for (const quant::Fill fill : {quant::Fill::kWide, quant::Fill::kTiny}) {
      c.fill = fill;
      InEitherWave([&] { Check(c, ShapesFor(c.type)); });
    }
  }
}

TEST(HipGemm, AnyNumberOfBlocks) {
  for (const Type type : {Type::kQ8_0, Type::kQ4_1}) {
    std::vector<int64_t> counts = {1, 2, 7, 9, 17, 25};
    if (std::getenv("TRINE_LONG") != nullptr) counts.insert(counts.end(), {8, 15, 16, 211});
    for (const int64_t blocks : counts) {
      GemmCase c;
      c.type = type;
      c.packed = type == Type::kQ8_0;
      c.k = 32 * blocks;
      c.n = 7;
      c.tokens = 33;
      CheckUnderEverySchedule(c);
    }
  }
}

TEST(HipGemm, SeveralTiles) {
  for (const Type type : {Type::kQ4_0, Type::kQ4_K, Type::kQ6_K, Type::kQ2_K}) {
    for (const int64_t columns : {9, 64, 70, 131}) {
      GemmCase c;
      c.type = type;
      c.packed = type != Type::kQ2_K;
      c.n = 131;
      c.tokens = columns;
      c.bias = true;
      InEitherWave([&] { Check(c, ShapesFor(c.type)); });
    }
  }
}

TEST(HipGemm, ColumnsOfExperts) {
  for (const Type type : {Type::kMXFP4, Type::kQ4_K, Type::kF16}) {
    for (const bool x_repeated : {false, true}) {
      GemmCase c;
      c.type = type;
      c.packed = type != Type::kMXFP4;
      c.n = 35;
      c.used = 3;
      c.tokens = 51;
      c.experts = 4;
      c.x_repeated = x_repeated;
      c.bias = x_repeated;
      CheckUnderEverySchedule(c);
    }
  }
}

TEST(HipGemm, FloatWeights) {
  for (const Type type : {Type::kF32, Type::kF16, Type::kBF16}) {
    for (const bool packed : {false, true}) {
      if (packed && type != Type::kF16) continue;
      for (const int64_t k : {1, 31, 33, 64, 127, 256, 300, 517}) {
        GemmCase c;
        c.type = type;
        c.packed = packed;
        c.k = k;
        c.n = 35;
        c.tokens = k == 300 ? 70 : 33;
        c.bias = k % 2 == 1;
        CheckUnderEverySchedule(c);
      }
    }
  }
}

TEST(HipGemm, RefusesWhatItDoesNotTake) {
  Product product;
  product.w.dims = {64, 8, 1, 1};
  product.x.dims = {64, 9, 1, 1};
  product.y.dims = {8, 9, 1, 1};
  EXPECT_EQ(WhyNotGemm(product), "");
  product.w.type = Type::kI32;
  EXPECT_NE(WhyNotGemm(product), "");
  product.w.type = Type::kQ8_0;  // but the activations are not quantised
  EXPECT_NE(WhyNotGemm(product), "");
  product.w.type = Type::kBF16;
  product.w.packed = true;
  EXPECT_NE(WhyNotGemm(product), "");
  product.w.packed = false;
  product.y.dims[1] = 10;
  EXPECT_NE(WhyNotGemm(product), "");
}

}  // namespace
}  // namespace trine::hip
