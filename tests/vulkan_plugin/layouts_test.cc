#include <cstring>

#include "backends/vulkan/backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/quant/packed_rows.h"
#include "kernels/quant/test_util.h"
#include "tests/abi/graph_builder.h"

namespace trine::vulkan {
namespace {

using sdk::GraphBuilder;
using ::testing::HasSubstr;

constexpr uint32_t kTypes[] = {TRINE_DTYPE_Q8_0, TRINE_DTYPE_Q4_0, TRINE_DTYPE_Q4_K,
                               TRINE_DTYPE_Q5_K, TRINE_DTYPE_Q6_K, TRINE_DTYPE_F16};

struct Listed {
  trine_status status;
  uint32_t count = 0;
  trine_layout_info info{};
  std::string sentence;
};

Listed List(const GraphBuilder& builder, uint32_t tensor, uint32_t capacity = 1,
            uint32_t stride = sizeof(trine_layout_info)) {
  Listed listed;
  trine_layout_list list{};
  list.struct_size = sizeof(list);
  list.stride = stride;
  list.capacity = capacity;
  list.infos = &listed.info;
  trine_error err{};
  const trine_graph graph = builder.Abi();
  listed.status = Table().layout_list(nullptr, &graph, tensor, &list, &err);
  listed.count = list.count;
  listed.sentence = err.message;
  return listed;
}

class LayoutsTest : public ::testing::Test {
 protected:
  uint32_t Weights(uint32_t dtype, std::vector<int64_t> dims) {
    return builder_.Tensor(dtype, std::move(dims), TRINE_ROLE_CONSTANT);
  }
  // The one layout of a tensor.
  trine_layout_info InfoOf(uint32_t tensor) { return List(builder_, tensor).info; }

  std::string WhyNot(uint32_t op = 0) {
    sdk::Graph graph;
    EXPECT_EQ(builder_.Refusal(&graph), "");
    return kPackedLayout.WhyNotIn(graph, op);
  }

  // A product whose weights are packed.
  uint32_t PackedProduct() {
    const uint32_t w = Weights(TRINE_DTYPE_Q8_0, {256, 8});
    builder_.tensors[w].layout = InfoOf(w).layout;
    builder_.Op(TRINE_OP_MATMUL, {w, builder_.F32({256, 2})}, {builder_.F32({8, 2})});
    return w;
  }

  GraphBuilder builder_;
};

TEST_F(LayoutsTest, WeightsHaveOneLayoutOfTheirOwn) {
  for (const uint32_t type : kTypes) {
    const uint32_t w = Weights(type, {512, 6, 3});
    const Listed listed = List(builder_, w);
    ASSERT_EQ(listed.status, TRINE_OK) << listed.sentence;
    ASSERT_EQ(listed.count, 1u) << type;
    uint64_t row_bytes = 0;
    ASSERT_TRUE(PackedRowBytes(static_cast<quant::Type>(type), 512, &row_bytes));
    EXPECT_GE(listed.info.layout, uint64_t{1} << 32) << "the plugin's own";
    EXPECT_EQ(listed.info.group_rows, 1u);
    EXPECT_EQ(listed.info.group_bytes, row_bytes);
    EXPECT_EQ(listed.info.packed_bytes, row_bytes * 18);
    EXPECT_EQ(listed.info.alignment, quant::kPackedAlignment);
    EXPECT_EQ(backends::PackedRowBytesOf(builder_.tensors[w]), row_bytes);
  }
}

TEST_F(LayoutsTest, OtherTensorsHaveNone) {
  const uint32_t state = builder_.Tensor(TRINE_DTYPE_Q8_0, {256, 8}, TRINE_ROLE_STATE);
  const uint32_t vector = Weights(TRINE_DTYPE_F16, {256});
  const uint32_t floats = Weights(TRINE_DTYPE_F32, {256, 8});
  const uint32_t strided = Weights(TRINE_DTYPE_Q8_0, {256, 8});
  builder_.tensors[strided].strides[1] = 1088;
  const uint32_t unknown = Weights(999, {256, 8});
  const uint32_t varying = Weights(TRINE_DTYPE_Q8_0, {256, builder_.Param(1, 8)});
  for (const uint32_t tensor : {state, vector, floats, strided, unknown, varying}) {
    const Listed listed = List(builder_, tensor);
    EXPECT_EQ(listed.status, TRINE_OK) << listed.sentence;
    EXPECT_EQ(listed.count, 0u) << "tensor " << tensor;
    EXPECT_EQ(listed.info.layout, 0u);
  }
}

TEST_F(LayoutsTest, ListsWriteNoMoreThanThereIsRoomFor) {
  const uint32_t w = Weights(TRINE_DTYPE_Q8_0, {256, 8});
  const Listed counted = List(builder_, w, 0);
  EXPECT_EQ(counted.count, 1u);
  EXPECT_EQ(counted.info.layout, 0u);
  const Listed shorter = List(builder_, w, 1, 16);  // a host of older headers
  EXPECT_NE(shorter.info.packed_bytes, 0u);
  EXPECT_EQ(shorter.info.group_rows, 0u);
}

TEST_F(LayoutsTest, ListsOfNoTensorAreRefused) {
  const Listed listed = List(builder_, 7);
  EXPECT_EQ(listed.status, TRINE_INVALID_ARGUMENT);
  EXPECT_THAT(listed.sentence, HasSubstr("no such tensor"));
}

TEST_F(LayoutsTest, PackedWeightsOfProductsAreRead) {
  PackedProduct();
  EXPECT_EQ(WhyNot(), "");
}

TEST_F(LayoutsTest, UnknownLayoutsAreRefused) {
  builder_.tensors[PackedProduct()].layout += 1;
  EXPECT_THAT(WhyNot(), HasSubstr("no such layout"));
}

TEST_F(LayoutsTest, OnlyProductsReadPackedTensors) {
  const uint32_t table = Weights(TRINE_DTYPE_Q8_0, {256, 8});
  builder_.tensors[table].layout = InfoOf(table).layout;
  builder_.Op(TRINE_OP_GATHER_ROWS, {table, builder_.I32({2})}, {builder_.F32({256, 2})});
  EXPECT_THAT(WhyNot(), HasSubstr("only weights of products"));
}

TEST_F(LayoutsTest, PackedTensorsKeepToTheirSlots) {
  const uint32_t w = PackedProduct();
  builder_.slots[builder_.tensors[w].slot].bytes = 100;
  EXPECT_THAT(WhyNot(), HasSubstr("does not fit its slot"));
  builder_.slots[builder_.tensors[w].slot].bytes = 1 << 20;
  builder_.tensors[w].offset = (1 << 20) - 64;
  EXPECT_THAT(WhyNot(), HasSubstr("does not fit its slot"));
  builder_.tensors[w].offset = 2;
  EXPECT_THAT(WhyNot(), HasSubstr("not aligned"));
}

class ConvertTest : public LayoutsTest {
 protected:
  trine_layout_convert_args Args(uint32_t tensor, uint32_t direction, const void* src, void* dst) {
    trine_layout_convert_args args{};
    args.struct_size = sizeof(args);
    args.direction = direction;
    args.tensor = &builder_.tensors[tensor];
    args.layout = InfoOf(tensor).layout;
    const trine_tensor& t = builder_.tensors[tensor];
    args.row_end = 1;
    for (uint32_t i = 1; i < t.rank; ++i) args.row_end *= static_cast<uint64_t>(t.dims[i]);
    args.src = src;
    args.dst = dst;
    return args;
  }
  std::string Convert(const trine_layout_convert_args& args) {
    trine_error err{};
    const trine_status status = Table().layout_convert(nullptr, &args, &err);
    EXPECT_TRUE(status == TRINE_OK || status == TRINE_INVALID_ARGUMENT);
    EXPECT_EQ(status == TRINE_OK, err.message[0] == '\0');
    return err.message;
  }
};

TEST_F(ConvertTest, PacksAndUnpacksEveryType) {
  quant::Random random(3);
  for (const uint32_t type : kTypes) {
    const uint32_t w = Weights(type, {768, 5, 2});
    const trine_layout_info info = InfoOf(w);
    const auto plain =
        quant::RandomWeights(static_cast<quant::Type>(type), 768 * 10, false, &random);
    std::vector<std::byte> packed(info.packed_bytes), back(plain.size());
    ASSERT_EQ(Convert(Args(w, TRINE_LAYOUT_PACK, plain.data(), packed.data())), "");
    ASSERT_EQ(Convert(Args(w, TRINE_LAYOUT_UNPACK, packed.data(), back.data())), "");
    EXPECT_EQ(back, plain) << type;
    // Pack in parts, as several threads would.
    std::vector<std::byte> by_parts(info.packed_bytes);
    for (uint64_t row = 0; row < 10; row += 2) {
      trine_layout_convert_args args = Args(w, TRINE_LAYOUT_PACK, plain.data(), by_parts.data());
      args.row_begin = row;
      args.row_end = row + 2;
      ASSERT_EQ(Convert(args), "");
    }
    EXPECT_EQ(by_parts, packed) << type;
  }
}

TEST_F(ConvertTest, TouchesTheRowsOfTheRangeOnly) {
  const uint32_t w = Weights(TRINE_DTYPE_Q4_0, {64, 4});
  const trine_layout_info info = InfoOf(w);
  const std::vector<std::byte> plain(4 * 36, std::byte{1});
  std::vector<std::byte> packed(info.packed_bytes, std::byte{0xee});
  trine_layout_convert_args args = Args(w, TRINE_LAYOUT_PACK, plain.data(), packed.data());
  args.row_begin = 1;
  args.row_end = 3;
  ASSERT_EQ(Convert(args), "");
  for (uint64_t i = 0; i < info.group_bytes; ++i) {
    EXPECT_EQ(packed[i], std::byte{0xee});
    EXPECT_EQ(packed[3 * info.group_bytes + i], std::byte{0xee});
  }
}

TEST_F(ConvertTest, RefusesWhatItCannotConvert) {
  const uint32_t w = Weights(TRINE_DTYPE_Q8_0, {256, 8});
  std::vector<std::byte> bytes(8 * 272), out(InfoOf(w).packed_bytes);
  const trine_layout_convert_args good = Args(w, TRINE_LAYOUT_PACK, bytes.data(), out.data());
  trine_layout_convert_args args = good;
  args.src = nullptr;
  EXPECT_THAT(Convert(args), HasSubstr("are needed"));
  args = good;
  args.tensor = nullptr;
  EXPECT_THAT(Convert(args), HasSubstr("are needed"));
  args = good;
  args.layout = 1;
  EXPECT_THAT(Convert(args), HasSubstr("no such layout"));
  args = good;
  args.layout = TRINE_LAYOUT_PLAIN;
  EXPECT_THAT(Convert(args), HasSubstr("no such layout"));
  args = good;
  args.direction = 3;
  EXPECT_THAT(Convert(args), HasSubstr("packed or unpacked"));
  args = good;
  args.row_end = 9;
  EXPECT_THAT(Convert(args), HasSubstr("no such rows"));
  args = good;
  args.row_begin = 5;
  args.row_end = 4;
  EXPECT_THAT(Convert(args), HasSubstr("no such rows"));
}

}  // namespace
}  // namespace trine::vulkan
