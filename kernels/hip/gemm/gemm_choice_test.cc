#include "kernels/hip/gemm/gemm_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace trine::hip {
namespace {

using quant::Type;

// A device with as many multiprocessors as an H200 has, and its shared memory.
constexpr DeviceShape kLargeDevice = {132, 48 << 10, MatrixUnit::kMma, 227 << 10};

Product ProductOf(int64_t k, int64_t n, int64_t columns, int64_t experts = 0,
                  Type type = Type::kQ4_K) {
  Product product;
  product.w.type = type;
  product.w.packed = true;
  product.w.dims = {k, n, std::max<int64_t>(1, experts), 1};
  product.x.dims = {k, columns, 1, 1};
  product.y.dims = {n, columns, 1, 1};
  // No launch reads these.
  product.q = QuantizedAt(reinterpret_cast<std::byte*>(64), k / 32, columns);
  if (experts > 0) product.ids.data = reinterpret_cast<std::byte*>(64);
  return product;
}

bool IsByClass(const TiledGemm& kernel) { return kernel.tile.rows == 128; }
bool IsByWarp(const TiledGemm& kernel) { return kernel.shared_bytes > 0 && !IsByClass(kernel); }

TEST(GemmChoice, LargeTilesForPrompts) {
  for (const Type type : {Type::kQ4_0, Type::kQ8_0, Type::kQ4_K, Type::kQ5_K, Type::kQ6_K}) {
    const TiledGemm kernel = ChooseGemm(ProductOf(4096, 14336, 512, 0, type), kLargeDevice);
    EXPECT_TRUE(IsByClass(kernel));
    EXPECT_GE(kernel.tile.columns, 64u);
    EXPECT_EQ(ChooseGemm(ProductOf(4096, 14336, 4096, 0, type), kLargeDevice).tile.columns, 128u);
  }
}

TEST(GemmChoice, AWarpForEachClassIfThereAreFewTiles) {
  for (const int64_t rows : {1024, 4096}) {
    for (const int64_t columns : {16, 32, 64}) {
      const TiledGemm kernel = ChooseGemm(ProductOf(4096, rows, columns), kLargeDevice);
      EXPECT_TRUE(IsByWarp(kernel)) << rows << " rows, " << columns << " columns";
    }
  }
}

TEST(GemmChoice, FactorsByClassAreNeeded) {
  Product product = ProductOf(4096, 4096, 64);
  product.q.by_class = nullptr;
  EXPECT_EQ(ChooseGemm(product, kLargeDevice).shared_bytes, 0u);
}

TEST(GemmChoice, TilesOfExpertsAreAsWideAsTheirColumns) {
  // 512 tokens that choose 8 of 128 experts: 32 columns for each.
  const TiledGemm kernel = ChooseGemm(ProductOf(2048, 768, 512 * 8, 128), kLargeDevice);
  EXPECT_TRUE(IsByClass(kernel));
  EXPECT_EQ(kernel.tile.columns, 64u);
  const TiledGemm long_prompt = ChooseGemm(ProductOf(2048, 768, 4096 * 8, 128), kLargeDevice);
  EXPECT_TRUE(IsByClass(long_prompt));
  EXPECT_GE(long_prompt.tile.columns, 64u);
}

TEST(GemmChoice, KernelsThatNeedMoreSharedMemoryThanThereIsAreLeftOut) {
  const Product product = ProductOf(4096, 4096, 512);
  DeviceShape shape = kLargeDevice;
  for (const uint32_t bytes : {227u << 10, 164u << 10, 99u << 10, 48u << 10, 0u}) {
    shape.asked_shared_bytes = bytes;
    const TiledGemm kernel = ChooseGemm(product, shape);
    EXPECT_NE(kernel.kernel, nullptr);
    EXPECT_LE(kernel.shared_bytes, bytes);
  }
}

TEST(GemmChoice, OtherUnitsAndPlainWeightsKeepTheirKernels) {
  Product product = ProductOf(4096, 4096, 512);
  DeviceShape shape = kLargeDevice;
  shape.unit = MatrixUnit::kDot4;
  EXPECT_EQ(ChooseGemm(product, shape).shared_bytes, 0u);
  product.w.packed = false;
  EXPECT_EQ(ChooseGemm(product, kLargeDevice).shared_bytes, 0u);
}

TEST(GemmChoice, ThereAreTilesForAllColumns) {
  const TileShape tile = {128, 64, 256};
  EXPECT_EQ(ColumnTiles(ProductOf(256, 128, 65), tile), 2);
  // Four experts, and the ids that are no expert.
  EXPECT_EQ(ColumnTiles(ProductOf(256, 128, 640, 4), tile), 10 + 5);
  EXPECT_EQ(ColumnTiles(ProductOf(256, 128, 3, 4), tile), 3);
}

}  // namespace
}  // namespace trine::hip
