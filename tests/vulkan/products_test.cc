// Compares matmul and moe_matmul on a driver with kernels/reference: every type, in the file's
// layout and packed, with OpSDot and without, in every form of the shaders.
#include "kernels/vulkan/runs/products.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/quant/activation.h"
#include "kernels/quant/packed_rows.h"
#include "kernels/reference/ops.h"
#include "tests/vulkan/quantized_columns.h"
#include "tests/vulkan/shader_runner.h"

namespace trine::vulkan {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;
using reference::Tensor;

struct ProductCase {
  Type type = Type::kQ8_0;
  bool packed = false;
  int64_t k = 0, n = 37, m = 1;
  bool bias = false;
  bool any_scale = true;
  Fill fill = Fill::kWide;
  ProductTuning tuning = SmallTiles();

  // Returns a tuning whose pipelines are compiled in a tenth of the time.
  static ProductTuning SmallTiles() {
    ProductTuning tuning;
    tuning.gemm_rows = tuning.gemm_columns = 2;
    tuning.gemv_fill = 0;  // tests set lanes and rows themselves
    return tuning;
  }
};

// Returns a width that is no multiple of anything that a shader counts in.
int64_t OddK(Type type) {
  const int64_t block = quant::Traits(type).block_values;
  return block == 1 ? 301 : block == 32 ? 32 * 21 : 256 * 3;
}

// Returns the padding of rows: in files, rows begin at whole 16-bit words at least.
int64_t RowPadding(Type type) { return type == Type::kF32 ? 4 : type == Type::kMXFP4 ? 1 : 2; }

// The weights as an operand behind `offset` bytes.
Bytes WeightOperand(const Tensor& w, bool packed, uint64_t offset, TensorView* view) {
  *view = ViewOf(w, offset);
  Bytes bytes = OperandOf(w, offset);
  if (packed) {
    uint64_t row_bytes = 0;
    EXPECT_TRUE(PackedRowBytes(w.view().type, w.view().dims[0], &row_bytes));
    view->strides[1] = static_cast<int64_t>(row_bytes);
    view->strides[2] = view->strides[1] * view->dims[1];
    view->strides[3] = view->strides[2] * view->dims[2];
    bytes.resize(offset + row_bytes * static_cast<uint64_t>(Rows(w.view())));
    for (int64_t r = 0; r < Rows(w.view()); ++r) {
      PackRow(w.view().type, w.view().dims[0], RowAt(w.view(), r),
              bytes.data() + offset + row_bytes * static_cast<uint64_t>(r));
    }
  }
  bytes.resize((bytes.size() + 3) / 4 * 4);  // bindings are whole words
  return bytes;
}

uint64_t WeightOffset(const ProductCase& c) {
  return c.packed ? 16 : 12 + static_cast<uint64_t>(c.type == Type::kMXFP4);
}

std::vector<KernelRun> Runs(const Product& p, const ProductTuning& tuning) {
  EXPECT_EQ(WhyNotProduct(p), "");
  std::vector<KernelRun> runs;
  if (quant::IsQuantized(p.w.type)) runs.push_back(QuantizeRun(p));
  if (NeedsLists(p, tuning)) runs.push_back(ListColumnsRun(p, tuning));
  runs.push_back(ProductRun(p, tuning));
  return runs;
}

class ProductsTest : public ShaderTest {
 protected:
  std::string Matmul(const ProductCase& c) {
    Random random(static_cast<uint64_t>(c.type) + 1);
    Tensor w(c.type, {c.k, c.n}, RowPadding(c.type)), x(Type::kF32, {c.k, c.m}, 4);
    Tensor bias(Type::kF32, {c.n}), y(Type::kF32, {c.n, c.m}, 8);
    w.FillWeights(c.any_scale, &random);
    x.FillWith(c.fill, &random);
    bias.FillWith(Fill::kUniform, &random);
    reference::Matmul(w, x, c.bias ? &bias.view() : nullptr, y, {0, c.n});

    Product p;
    Bytes w_bytes = WeightOperand(w, c.packed, WeightOffset(c), &p.w);
    Bytes x_bytes = OperandOf(x, 20), bias_bytes = OperandOf(bias, 4);
    const Bytes want = OperandOf(y, 8);
    Bytes y_bytes = want;
    for (int64_t column = 0; column < c.m; ++column) {
      std::memset(y_bytes.data() + 8 + column * y.view().strides[1], 0xff,
                  static_cast<size_t>(c.n) * 4);
    }
    p.packed = c.packed;
    p.x = ViewOf(x, 20);
    if (c.bias) p.bias = ViewOf(bias, 4);
    p.y = ViewOf(y, 8);
    p.scratch_offset = 32;
    const absl::Status status =
        runner_->Run(Runs(p, c.tuning), {&w_bytes, &x_bytes, &bias_bytes, &y_bytes},
                     p.scratch_offset + ScratchBytes(p, c.tuning) + 16);
    return status.ok() ? Difference(y_bytes, want) : status.ToString();
  }

  // Tests five experts, of which w holds [first, first + held). Some ids are invalid.
  std::string MoeMatmul(const ProductCase& c, int64_t slots, int64_t x_slots, int64_t first,
                        int64_t held) {
    constexpr int64_t kExperts = 5;
    Random random(static_cast<uint64_t>(c.type) + 2);
    Tensor w(c.type, {c.k, c.n, kExperts}, RowPadding(c.type));
    Tensor x(Type::kF32, {c.k, x_slots, c.m}, 4), ids(Type::kI32, {slots, c.m}, 4);
    Tensor bias(Type::kF32, {c.n, kExperts}, 4), y(Type::kF32, {c.n, slots, c.m}, 8);
    w.FillWeights(c.any_scale, &random);
    x.FillWith(c.fill, &random);
    bias.FillWith(Fill::kUniform, &random);
    for (int64_t row = 0; row < c.m; ++row) {
      for (int64_t i = 0; i < slots; ++i) {
        reference::I32Row(ids, row)[i] = static_cast<int32_t>(random.Below(kExperts + 2)) - 1;
      }
    }
    reference::MoeMatmul(w, x, ids, c.bias ? &bias.view() : nullptr, y, {0, c.n});

    Bytes want = OperandOf(y, 8);
    Bytes y_bytes = want;
    for (int64_t row = 0; row < slots * c.m; ++row) {
      const int32_t id = reference::I32Row(ids, row / slots)[row % slots];
      const bool none = id < 0 || id >= kExperts;
      const bool ours = none ? first == 0 : id >= first && id < first + held;
      const size_t at = 8 + static_cast<size_t>(row * y.view().strides[1]);
      std::memset(y_bytes.data() + at, 0xff, static_cast<size_t>(c.n) * 4);
      if (!ours) std::memset(want.data() + at, 0xff, static_cast<size_t>(c.n) * 4);
    }

    Product p;
    Bytes w_bytes = WeightOperand(w, c.packed, WeightOffset(c), &p.w);
    Bytes x_bytes = OperandOf(x, 20), bias_bytes = OperandOf(bias, 4),
          ids_bytes = OperandOf(ids, 12);
    p.w.offset += static_cast<uint64_t>(first * p.w.strides[2]);
    p.w.dims[2] = held;
    p.packed = c.packed;
    p.x = ViewOf(x, 20);
    if (c.bias) p.bias = ViewOf(bias, 4);
    p.y = ViewOf(y, 8);
    p.ids = ViewOf(ids, 12);
    p.experts = kExperts;
    p.first_expert = first;
    p.scratch_offset = 32;
    const absl::Status status =
        runner_->Run(Runs(p, c.tuning), {&w_bytes, &x_bytes, &ids_bytes, &bias_bytes, &y_bytes},
                     p.scratch_offset + ScratchBytes(p, c.tuning) + 16);
    return status.ok() ? Difference(y_bytes, want) : status.ToString();
  }
};

TEST_F(ProductsTest, QuantizesActivationsAsTheReferenceDoes) {
  for (const int64_t blocks : {1, 7, 8, 21, 64}) {
    const int64_t k = 32 * blocks, inner = 3, outer = 2;
    for (const Fill fill : quant::kAllFills) {
      Random random(static_cast<uint64_t>(blocks));
      Tensor x(Type::kF32, {k, inner, outer}, 4);
      x.FillWith(fill, &random);
      Product p;
      p.w.dims = {k, 1, 1, 1};
      p.x = ViewOf(x, 4);
      Bytes x_bytes = OperandOf(x, 4), q(QuantizedBytes(k, inner * outer));
      KernelRun run = QuantizeRun(p);
      run.operands = {0, 1};
      ASSERT_TRUE(runner_->Run({run}, {&x_bytes, &q}).ok());
      EXPECT_EQ(WrongColumns(q, 0, x), "") << blocks;
    }
  }
}

// Type, packed, OpSDot.
struct Form {
  Type type;
  bool packed, int_dot;
};

std::vector<Form> AllForms() {
  std::vector<Form> forms;
  for (const Type type : quant::kWeightTypes) {
    for (const bool packed : {false, true}) {
      if (packed && !HasPackedLayout(type)) continue;
      for (const bool int_dot : {false, true}) {
        if (int_dot && !quant::IsQuantized(type)) continue;
        forms.push_back({type, packed, int_dot});
      }
    }
  }
  return forms;
}

class AllFormsTest : public ProductsTest, public ::testing::WithParamInterface<Form> {
 protected:
  ProductCase Make() const {
    ProductCase c;
    c.type = GetParam().type;
    c.packed = GetParam().packed;
    c.tuning.int_dot = GetParam().int_dot;
    c.k = OddK(c.type);
    return c;
  }
  void SetUp() override {
    ProductsTest::SetUp();
    if (runner_ != nullptr && GetParam().int_dot && !runner_->device().caps().int_dot) {
      GTEST_SKIP() << "the device has no OpSDot";
    }
  }
};

TEST_P(AllFormsTest, Gemv) {
  ProductCase c = Make();
  for (const Fill fill : quant::kAllFills) {
    for (const bool any_scale : {false, true}) {
      c.fill = fill;
      c.any_scale = any_scale;
      c.bias = !c.bias;
      EXPECT_EQ(Matmul(c), "") << "fill " << static_cast<int>(fill) << ", any " << any_scale;
    }
  }
}

TEST_P(AllFormsTest, Gemm) {
  ProductCase c = Make();
  c.n = 45;
  c.m = 39;
  for (const bool bias : {false, true}) {
    c.bias = bias;
    EXPECT_EQ(Matmul(c), "") << bias;
  }
}

std::string NameOf(const ::testing::TestParamInfo<Form>& info) {
  return std::string(info.param.packed ? "packed_" : "") + quant::Traits(info.param.type).name +
         (info.param.int_dot ? "_dot" : "");
}

// Returns each type and layout either with OpSDot or without. Compiling pipelines takes most of the
// time, so that all forms are tested only with TRINE_LONG=1.
std::vector<Form> HalfOfForms() {
  std::vector<Form> forms;
  for (const Form& form : AllForms()) {
    const bool odd = static_cast<uint32_t>(form.type) % 2 != 0;
    if (!quant::IsQuantized(form.type) || form.int_dot == (odd != form.packed)) {
      forms.push_back(form);
    }
  }
  return forms;
}

bool IsLong() { return std::getenv("TRINE_LONG") != nullptr; }

INSTANTIATE_TEST_SUITE_P(Forms, AllFormsTest,
                         ::testing::ValuesIn(IsLong() ? AllForms() : HalfOfForms()), NameOf);

// Returns forms for tests that don't depend on what differs between OpSDot and other instructions:
// each type, in one of its layouts or, with TRINE_LONG=1, in both.
std::vector<Form> SomeForms() {
  std::vector<Form> forms;
  for (const Form& form : HalfOfForms()) {
    const bool odd = static_cast<uint32_t>(form.type) / 2 % 2 != 0;
    if (IsLong() || !quant::IsQuantized(form.type) || form.packed == odd) forms.push_back(form);
  }
  return forms;
}

class SomeFormsTest : public AllFormsTest {};

TEST_P(SomeFormsTest, GemvOfMoreLanes) {
  ProductCase c = Make();
  c.tuning.gemv_lanes = 32;
  c.tuning.gemv_blocks = 2;
  c.m = 3;
  EXPECT_EQ(Matmul(c), "");
}

TEST_P(SomeFormsTest, MoeGemv) {
  ProductCase c = Make();
  c.bias = true;
  c.m = 2;
  EXPECT_EQ(MoeMatmul(c, 2, 1, 0, 5), "");
  EXPECT_EQ(MoeMatmul(c, 2, 2, 0, 5), "");
}

TEST_P(SomeFormsTest, MoeGemm) {
  ProductCase c = Make();
  c.m = 31;
  EXPECT_EQ(MoeMatmul(c, 2, 1, 0, 5), "");
  c.bias = true;
  EXPECT_EQ(MoeMatmul(c, 3, 3, 0, 5), "");
}

INSTANTIATE_TEST_SUITE_P(Forms, SomeFormsTest, ::testing::ValuesIn(SomeForms()), NameOf);

TEST_F(ProductsTest, EveryNumberOfColumns) {
  // Each number up to 8 is a shader, which a software driver takes a second to compile.
  const std::vector<int64_t> all = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 17}, some = {1, 4, 9};
  for (const Type type : {Type::kQ8_0, Type::kQ4_K, Type::kF16}) {
    for (const int64_t m : IsLong() || type == Type::kQ8_0 ? all : some) {
      ProductCase c;
      c.type = type;
      c.packed = true;
      c.k = OddK(type);
      c.m = m;
      EXPECT_EQ(Matmul(c), "") << m;
    }
  }
}

TEST_F(ProductsTest, EveryShapeOfWork) {
  std::vector<Type> types = {Type::kQ6_K};
  if (IsLong()) types.insert(types.end(), {Type::kQ4_0, Type::kBF16});
  for (const Type type : types) {
    ProductCase c;
    c.type = type;
    c.k = OddK(type);
    struct Gemv {
      uint32_t workgroup, lanes, rows;
    };
    for (const Gemv& gemv : {Gemv{32, 8, 1}, {32, 32, 4}, {64, 16, 2}, {128, 8, 4}, {128, 32, 1}}) {
      c.tuning = ProductCase::SmallTiles();
      c.tuning.gemv_workgroup = gemv.workgroup;
      c.tuning.gemv_lanes = gemv.lanes;
      c.tuning.gemv_rows = gemv.rows;
      for (const int64_t n : {1, 64, 131}) {
        c.n = n;
        EXPECT_EQ(Matmul(c), "") << gemv.workgroup << " " << gemv.lanes << " " << n;
      }
    }
    // The tiles of a device; and others that need more shared memory to join than for their values.
    struct Gemm {
      uint32_t rows, columns;
    };
    for (const Gemm& gemm : {Gemm{4, 8}, {1, 3}, {1, 1}}) {
      c.tuning.gemm_rows = gemm.rows;
      c.tuning.gemm_columns = gemm.columns;
      for (const int64_t m : {9, 32, 37}) {
        c.m = m;
        EXPECT_EQ(Matmul(c), "") << gemm.rows << " " << gemm.columns << " " << m;
      }
    }
    c.m = 1;
  }
}

// Rows of eight lanes with a sum each, and rows whose terms go through shared memory.
TEST_F(ProductsTest, SubgroupsOfEverySize) {
  const DeviceCaps& caps = runner_->device().caps();
  if (!caps.can_require_subgroup_size) GTEST_SKIP() << "the device has subgroups of one size";
  std::vector<uint32_t> sizes = {0};
  for (uint32_t size = caps.min_subgroup_size; size <= caps.max_subgroup_size; size *= 2) {
    sizes.push_back(size);
  }
  for (const Type type : {Type::kQ4_K, Type::kBF16}) {
    for (const uint32_t lanes : {8u, 32u}) {
      for (const uint32_t size : sizes) {
        ProductCase c;
        c.type = type;
        c.k = OddK(type);
        c.m = 3;
        c.tuning.gemv_workgroup = std::max(64u, size);
        c.tuning.gemv_lanes = lanes;
        c.tuning.gemv_subgroup = size;
        EXPECT_EQ(Matmul(c), "") << lanes << " lanes, subgroups of " << size;
      }
    }
  }
}

TEST_F(ProductsTest, RowsOfAnyLength) {
  for (const Type type : {Type::kQ8_0, Type::kQ5_0, Type::kQ5_K, Type::kMXFP4, Type::kF16}) {
    for (const int64_t blocks : {1, 2, 8, 9, 65}) {
      ProductCase c;
      c.type = type;
      c.k = quant::Traits(type).block_values * blocks;
      for (const bool packed : {false, true}) {
        if (packed && !HasPackedLayout(type)) continue;
        c.packed = packed;
        for (const int64_t m : {1, 9}) {
          c.m = m;
          EXPECT_EQ(Matmul(c), "") << quant::Traits(type).name << " " << c.k << " " << m;
        }
      }
    }
  }
}

TEST_F(ProductsTest, ExpertsInSeveralBindings) {
  for (const int64_t m : {2, 31}) {
    ProductCase c;
    c.k = OddK(c.type);
    c.m = m;
    c.bias = true;
    EXPECT_EQ(MoeMatmul(c, 2, 1, 0, 2), "");
    EXPECT_EQ(MoeMatmul(c, 2, 1, 2, 3), "");
  }
}

TEST_F(ProductsTest, MoreRowsThanOneSideOfGroups) {
  ProductCase c;
  c.k = 32;
  c.n = 65535 + 5;
  c.tuning.gemv_workgroup = 32;
  c.tuning.gemv_lanes = 32;
  c.tuning.gemv_rows = 1;
  EXPECT_EQ(Matmul(c), "");
}

}  // namespace
}  // namespace trine::vulkan
