#include <cstring>

#include "kernels/reference/ops.h"
#include "kernels/vulkan/runs/simple.h"
#include "tests/vulkan/shader_runner.h"

namespace trine::vulkan {
namespace {

using quant::Fill;
using reference::AllRows;
using reference::Random;
using reference::Tensor;
using reference::Type;

class DataMovementShaderTest : public ShaderTest {
 protected:
  void CheckCopy(const Tensor& x, const Tensor& want, uint64_t x_offset, uint64_t y_offset) {
    Bytes in = OperandOf(x, x_offset), out = OperandOf(want, y_offset);
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(y_offset), out.end(), std::byte{0});
    reference::Copy(x, want, AllRows(want));
    const KernelRun run = CopyRun(ViewOf(x, x_offset), ViewOf(want, y_offset), 64);
    const absl::Status status = runner_->Run({run}, {&in, &out});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Difference(out, OperandOf(want, y_offset)), "")
        << quant::Traits(x.view().type).name << " to " << quant::Traits(want.view().type).name;
  }
};

// Fills the first rows with every bit pattern of the type, the rest with ordinary values.
void FillBits(Tensor* tensor, Random* random) {
  const reference::View& view = tensor->view();
  for (int64_t r = 0; r < reference::Rows(view); ++r) {
    for (int64_t i = 0; i < view.dims[0]; ++i) {
      const auto bits = static_cast<uint32_t>(random->Next());
      const size_t size = view.type == Type::kF32 ? 4 : 2;
      std::memcpy(reference::RowAt(view, r) + static_cast<size_t>(i) * size, &bits, size);
    }
  }
}

TEST_F(DataMovementShaderTest, CopyConvertsAmongFloats) {
  Random random(1);
  for (const Type from : {Type::kF32, Type::kF16, Type::kBF16}) {
    for (const Type to : {Type::kF32, Type::kF16, Type::kBF16}) {
      for (const auto& [n, padding] : {std::pair<int64_t, int64_t>{1, 0}, {17, 0}, {300, 8}}) {
        Tensor x(from, {n, 3, 5}, padding), want(to, {n, 3, 5}, 2 * padding);
        FillBits(&x, &random);
        CheckCopy(x, want, 4, 8);
      }
    }
  }
}

// Around the bounds of f16: the least denormal and its half, 65504, 65520, ties.
TEST_F(DataMovementShaderTest, CopyRoundsAtTheEdgesOfF16) {
  std::vector<uint32_t> edges;
  for (const uint32_t base : {0x33000000u, 0x33800000u, 0x38800000u, 0x477fe000u, 0x477ff000u,
                              0x387fe000u, 0x3f801000u, 0x3f803000u, 0x7f800000u, 0x00800000u}) {
    for (int32_t near = -2; near <= 2; ++near) {
      edges.push_back(base + static_cast<uint32_t>(near));
      edges.push_back((base + static_cast<uint32_t>(near)) | 0x80000000u);
    }
  }
  for (const Type to : {Type::kF16, Type::kBF16}) {
    Tensor x(Type::kF32, {static_cast<int64_t>(edges.size())});
    Tensor want(to, {static_cast<int64_t>(edges.size())});
    std::memcpy(x.Row(0), edges.data(), edges.size() * 4);
    CheckCopy(x, want, 0, 0);
  }
}

TEST_F(DataMovementShaderTest, CopyMovesEveryType) {
  Random random(2);
  for (const Type type : quant::kAllTypes) {
    const int64_t block = quant::Traits(type).block_values;
    Tensor x(type, {3 * block, 3, 2}), want(type, {3 * block, 3, 2});
    for (int64_t r = 0; r < reference::Rows(x); ++r) {
      const Bytes row = quant::RandomWeights(type, 3 * block, true, &random);
      std::copy(row.begin(), row.end(), reference::RowAt(x.view(), r));
    }
    CheckCopy(x, want, 0, 0);
    CheckCopy(x, want, 4, 12);
  }
}

TEST_F(DataMovementShaderTest, GatherRowsOfEveryType) {
  Random random(3);
  for (const Type type : quant::kWeightTypes) {
    for (const bool any_scale : {false, true}) {
      const int64_t k = quant::IsQuantized(type) ? 3 * 256 : 301;
      Tensor table(type, {k, 11}), ids(Type::kI32, {7}), want(Type::kF32, {k, 7}, 20);
      table.FillWeights(any_scale, &random);
      ids.Set({3, 0, 10, -1, 11, 3, 2'000'000'000});
      const uint64_t offset = type == Type::kMXFP4 ? 17 : 8;
      Bytes in = OperandOf(table, offset), id_bytes = OperandOf(ids, 4), out = OperandOf(want);
      reference::GatherRows(table, ids, want, AllRows(want));
      const KernelRun run = GatherRowsRun(ViewOf(table, offset), ViewOf(ids, 4), ViewOf(want), 128);
      const absl::Status status = runner_->Run({run}, {&in, &id_bytes, &out});
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(Difference(out, OperandOf(want)), "") << quant::Traits(type).name;
    }
  }
}

// Rows [0, 4), [4, 8), [8, 11) are bound separately: each run gathers only its own rows.
TEST_F(DataMovementShaderTest, GatherRowsByWindows) {
  Random random(4);
  const int64_t k = 64;
  Tensor table(Type::kQ8_0, {k, 11}), ids(Type::kI32, {6}), want(Type::kF32, {k, 6});
  table.FillWeights(false, &random);
  ids.Set({9, 4, 3, 11, 0, 7});
  reference::GatherRows(table, ids, want, AllRows(want));
  Bytes id_bytes = OperandOf(ids), out(want.bytes().size(), std::byte{0x11});
  for (const TableWindow& window : {TableWindow{4, 4}, TableWindow{8, 3}, TableWindow{0, 4}}) {
    const auto row_bytes = static_cast<size_t>(table.view().strides[1]);
    const auto begin =
        table.bytes().begin() + static_cast<std::ptrdiff_t>(row_bytes) * window.first_row;
    Bytes part(begin, begin + static_cast<std::ptrdiff_t>(row_bytes) * window.rows);
    const KernelRun run = GatherRowsRun(ViewOf(table), window, ViewOf(ids), ViewOf(want), 32);
    const absl::Status status = runner_->Run({run}, {&part, &id_bytes, &out});
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(Difference(out, OperandOf(want)), "");
}

}  // namespace
}  // namespace trine::vulkan
