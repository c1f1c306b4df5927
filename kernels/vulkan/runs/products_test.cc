#include "kernels/vulkan/runs/products.h"

#include <array>

#include "gtest/gtest.h"
#include "kernels/quant/packed_rows.h"
#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {
namespace {

using quant::Type;

TensorView View(Type type, std::array<int64_t, 3> dims, uint64_t offset = 0) {
  TensorView view;
  view.type = type;
  view.dims = {dims[0], dims[1], dims[2], 1};
  uint64_t row_bytes = 0;
  quant::RowBytes(type, dims[0], &row_bytes);
  view.strides[1] = static_cast<int64_t>(row_bytes);
  view.strides[2] = view.strides[1] * dims[1];
  view.strides[3] = view.strides[2] * dims[2];
  view.offset = offset;
  return view;
}

Product Matmul(Type type, int64_t k, int64_t n, int64_t m) {
  Product p;
  p.w = View(type, {k, n, 1});
  p.x = View(Type::kF32, {k, m, 1});
  p.y = View(Type::kF32, {n, m, 1});
  return p;
}

Product Moe(Type type, int64_t k, int64_t n, int64_t experts, int64_t used, int64_t m) {
  Product p;
  p.w = View(type, {k, n, experts});
  p.x = View(Type::kF32, {k, 1, m});
  p.y = View(Type::kF32, {n, used, m});
  p.ids = View(Type::kI32, {used, m, 1});
  p.experts = experts;
  return p;
}

TEST(ProductsTest, FewColumnsAreAGemv) {
  ProductTuning tuning;
  tuning.gemv_workgroup = 64;
  tuning.gemv_rows = 2;
  tuning.gemv_fill = 0;
  const KernelRun run = ProductRun(Matmul(Type::kQ8_0, 896, 100, 1), tuning);
  EXPECT_EQ(run.shader, &shaders::gemv_quantized);
  EXPECT_EQ(run.constants, (std::vector<uint32_t>{64, 20, 8, 2, 1, 1}));
  EXPECT_EQ(run.groups, (std::array<uint32_t, 3>{7, 1, 1}));  // 16 rows each
  EXPECT_EQ(run.operands, (std::vector<uint32_t>{0, kScratchOperand, 0, 3}));
  EXPECT_EQ(run.push.size() * 4, run.shader->push_bytes);

  tuning.int_dot = true;
  const KernelRun eight = ProductRun(Matmul(Type::kQ8_0, 896, 100, 8), tuning);
  EXPECT_EQ(eight.shader, &shaders::gemv_quantized_dot);
  EXPECT_EQ(eight.constants, (std::vector<uint32_t>{64, 20, 8, 1, 8, 1}));
  EXPECT_EQ(ProductRun(Matmul(Type::kQ8_0, 896, 100, 9), tuning).shader,
            &shaders::gemm_quantized_dot);
}

TEST(ProductsTest, SpreadsFewRowsOverMoreLanes) {
  ProductTuning tuning;
  tuning.gemv_workgroup = 64;
  tuning.gemv_rows = 4;
  tuning.gemv_fill = 16384;
  const auto lanes_and_rows = [&](int64_t k, int64_t n) {
    const KernelRun run = ProductRun(Matmul(Type::kQ8_0, k, n, 1), tuning);
    return std::vector<uint32_t>{run.constants[2], run.constants[3]};
  };
  EXPECT_EQ(lanes_and_rows(4096, 32768), (std::vector<uint32_t>{8, 4}));
  EXPECT_EQ(lanes_and_rows(4096, 2048), (std::vector<uint32_t>{8, 1}));
  EXPECT_EQ(lanes_and_rows(4096, 1024), (std::vector<uint32_t>{16, 1}));
  EXPECT_EQ(lanes_and_rows(4096, 64), (std::vector<uint32_t>{32, 1}));
  EXPECT_EQ(lanes_and_rows(512, 64), (std::vector<uint32_t>{16, 1}));  // k has 16 blocks
}

TEST(ProductsTest, ManyColumnsAreAGemm) {
  const ProductTuning tuning;
  const KernelRun run = ProductRun(Matmul(Type::kQ4_K, 512, 100, 70), tuning);
  EXPECT_EQ(run.shader, &shaders::gemm_quantized);
  EXPECT_EQ(run.constants, (std::vector<uint32_t>{256, 26, 4, 8}));
  EXPECT_EQ(run.groups, (std::array<uint32_t, 3>{4, 3, 1}));  // tiles of 32 rows and 32 columns
  const KernelRun floats = ProductRun(Matmul(Type::kBF16, 512, 100, 70), tuning);
  EXPECT_EQ(floats.shader, &shaders::gemm_float);
  EXPECT_EQ(floats.groups, (std::array<uint32_t, 3>{7, 5, 1}));  // tiles of 16 rows and 16 columns
  EXPECT_EQ(floats.operands, (std::vector<uint32_t>{0, 1, 0, 3}));
}

TEST(ProductsTest, PackedWeightsCountInWordsOf16Bytes) {
  Product p = Matmul(Type::kQ8_0, 896, 100, 1);
  p.packed = true;
  p.w.strides[1] = 960;
  p.w.offset = 48;
  p.bias = View(Type::kF32, {100, 1, 1}, 12);
  const KernelRun run = ProductRun(p, {});
  EXPECT_EQ(run.constants[1], 256u + 20u);
  EXPECT_EQ(run.push[3], 3u);
  EXPECT_EQ(run.push[4], 60u);
  EXPECT_EQ(run.push[7], 3u);  // the bias: its offset, then the flag that it is there
  EXPECT_EQ(run.push[8], 1u);
  EXPECT_EQ(run.operands[2], 2u);
}

TEST(ProductsTest, ScratchHoldsActivationsAndLists) {
  const ProductTuning tuning;
  EXPECT_EQ(ScratchBytes(Matmul(Type::kF16, 896, 100, 5), tuning), 0u);
  EXPECT_EQ(ScratchBytes(Matmul(Type::kQ8_0, 896, 100, 5), tuning), 5u * (32 * 32 + 28 * 8));
  EXPECT_EQ(QuantizedBytes(32, 3), 3u * (256 + 16));  // columns begin at whole words
  const Product moe = Moe(Type::kQ8_0, 256, 64, 4, 2, 50);
  ASSERT_TRUE(NeedsLists(moe, tuning));
  // 100 columns in tiles of 32: at most 3 full ones, 4 of experts, 1 of ids that are no expert.
  EXPECT_EQ(ScratchBytes(moe, tuning), 50u * 8 * 40 + (4 + 4 * 8 + 100) * 4);
  const KernelRun lists = ListColumnsRun(moe, tuning);
  EXPECT_EQ(lists.push.size() * 4, lists.shader->push_bytes);
  const KernelRun run = ProductRun(moe, tuning);
  EXPECT_EQ(run.shader, &shaders::moe_gemm_quantized);
  EXPECT_EQ(run.operands, (std::vector<uint32_t>{0, kScratchOperand, kScratchOperand, 0, 4}));
  EXPECT_EQ(run.groups, (std::array<uint32_t, 3>{2, 8, 1}));
  EXPECT_EQ(run.push.size() * 4, run.shader->push_bytes);
}

TEST(ProductsTest, FewColumnsOfExpertsGoOneByOne) {
  const Product p = Moe(Type::kQ4_0, 256, 64, 32, 4, 3);
  EXPECT_FALSE(NeedsLists(p, {}));
  const KernelRun run = ProductRun(p, {});
  EXPECT_EQ(run.shader, &shaders::moe_gemv_quantized);
  EXPECT_EQ(run.groups[2], 12u);
  EXPECT_EQ(run.operands, (std::vector<uint32_t>{0, kScratchOperand, 2, 0, 4}));
}

TEST(ProductsTest, QuantizesEachColumnOnce) {
  Product p = Matmul(Type::kQ8_0, 896, 100, 5);
  p.scratch_offset = 64;
  const KernelRun run = QuantizeRun(p);
  EXPECT_EQ(run.push.size() * 4, run.shader->push_bytes);
  EXPECT_EQ(run.operands, (std::vector<uint32_t>{1, kScratchOperand}));
  EXPECT_EQ(run.groups, (std::array<uint32_t, 3>{18, 1, 1}));  // 140 blocks, eight to a group
}

TEST(ProductsTest, NothingToDoIsNoGroups) {
  EXPECT_EQ(ProductRun(Matmul(Type::kQ8_0, 896, 100, 0), {}).groups[2], 0u);
  EXPECT_EQ(ProductRun(Matmul(Type::kQ8_0, 896, 0, 1), {}).groups[0], 0u);
}

TEST(ProductsTest, SaysWhatItCanNotMultiply) {
  EXPECT_EQ(WhyNotProduct(Matmul(Type::kQ4_K, 512, 100, 1)), "");
  EXPECT_EQ(WhyNotProduct(Matmul(Type::kMXFP4, 32, 3, 1)), "");
  EXPECT_EQ(WhyNotProduct(Moe(Type::kF16, 100, 64, 32, 4, 3)), "");
  EXPECT_NE(WhyNotProduct(Matmul(Type::kI32, 512, 100, 1)), "");
  EXPECT_NE(WhyNotProduct(Matmul(Type::kQ8_KV, 512, 100, 1)), "");
  Product p = Matmul(Type::kQ5_0, 512, 100, 1);
  p.packed = true;
  EXPECT_NE(WhyNotProduct(p).find("q5_0 has no packed layout"), std::string::npos);
  p = Matmul(Type::kQ8_0, 512, 100, 1);
  p.w.offset = 1;
  EXPECT_NE(WhyNotProduct(p), "");
  p.w.offset = 2;
  EXPECT_EQ(WhyNotProduct(p), "");
  p.packed = true;
  EXPECT_NE(WhyNotProduct(p), "");
  p = Matmul(Type::kQ8_0, 512, 100, 1);
  p.y.offset = 2;
  EXPECT_NE(WhyNotProduct(p), "");
  p = Matmul(Type::kQ8_0, 1 << 20, 1 << 20, 1);
  EXPECT_NE(WhyNotProduct(p).find("w is larger"), std::string::npos);
  p = Matmul(Type::kQ8_0, 512, 100, 1);
  p.x.dims[2] = 2;
  EXPECT_NE(WhyNotProduct(p), "");
}

TEST(ProductsTest, RunsSayWhatSharedMemoryTheyTake) {
  const ProductTuning tuning;  // 32x32 results of a quantised type, 16x16 of floats
  EXPECT_EQ(ProductRun(Matmul(Type::kQ4_K, 256, 100, 100), tuning).shared_bytes, 23040u);
  EXPECT_EQ(ProductRun(Matmul(Type::kF16, 256, 100, 100), tuning).shared_bytes, 16384u);
  EXPECT_EQ(ProductRun(Matmul(Type::kF16, 256, 100, 8), tuning).shared_bytes, 64u * 8 * 4);
  EXPECT_EQ(ListColumnsRun(Moe(Type::kF16, 256, 100, 127, 4, 100), tuning).shared_bytes, 1024u);
  EXPECT_EQ(GemmSharedBytes(tuning), 23040u);
  for (const Type type : {Type::kQ4_K, Type::kF32}) {
    for (const int64_t n : {1, 20, 5000}) {
      for (int64_t m = 1; m <= tuning.gemv_columns; ++m) {
        const KernelRun run = ProductRun(Matmul(type, 2048, n, m), tuning);
        EXPECT_GT(run.shared_bytes, 0u);
        EXPECT_LE(run.shared_bytes, GemvSharedBytes(tuning));
      }
    }
  }
}

TEST(ProductsTest, GemvsAskForTheirSubgroups) {
  ProductTuning tuning;
  tuning.gemv_subgroup = 16;
  EXPECT_EQ(ProductRun(Matmul(Type::kQ8_0, 256, 100, 8), tuning).subgroup_size, 16u);
  EXPECT_EQ(ProductRun(Matmul(Type::kQ8_0, 256, 100, 9), tuning).subgroup_size, 0u);
}

}  // namespace
}  // namespace trine::vulkan
