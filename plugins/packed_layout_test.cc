#include "plugins/packed_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trine {
namespace {

using testing::HasSubstr;

trine_tensor Experts() {
  trine_tensor t{};
  t.dtype = TRINE_DTYPE_F32;
  t.rank = 3;
  t.dims[0] = 8;
  t.dims[1] = 10;
  t.dims[2] = 3;
  return t;
}

trine_layout_info Fours() {
  trine_layout_info info{};
  info.layout = uint64_t{7} << 32;
  info.group_rows = 4;
  info.group_bytes = 4 * 32;
  info.packed_bytes = 9 * info.group_bytes;
  info.alignment = 64;
  return info;
}

TEST(PackedLayoutTest, EachMatrixIsGroupedByItself) {
  const auto layout = PackedLayout::Create(Experts(), Fours(), 64);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->groups(), 9u);
  EXPECT_EQ(layout->row_bytes(), 32u);
  EXPECT_EQ(layout->tensor().dims[3], 1);
  const uint64_t begins[] = {0, 4, 8, 10, 14, 18, 20, 24, 28};
  for (uint64_t g = 0; g < 9; ++g) {
    EXPECT_EQ(layout->RowBegin(g), begins[g]);
    EXPECT_EQ(layout->RowEnd(g), g == 8 ? 30 : begins[g + 1]);
  }
}

TEST(PackedLayoutTest, WhatCannotBeIsRefusedWithTheNumber) {
  const auto error = [](auto change) {
    trine_layout_info info = Fours();
    change(info);
    return std::string(PackedLayout::Create(Experts(), info, 64).status().message());
  };
  EXPECT_THAT(error([](auto& i) { i.layout = TRINE_LAYOUT_PLAIN; }), HasSubstr("plain"));
  EXPECT_THAT(error([](auto& i) { i.group_rows = 0; }), HasSubstr("groups of 0 rows"));
  EXPECT_THAT(error([](auto& i) { i.group_rows = ~uint64_t{0}; }), HasSubstr("groups of"));
  EXPECT_THAT(error([](auto& i) { i.group_bytes = 0; }), HasSubstr("and 0 bytes"));
  EXPECT_THAT(error([](auto& i) { i.packed_bytes -= 1; }), HasSubstr("do not fit in 1151"));
  EXPECT_THAT(error([](auto& i) { i.group_bytes = ~uint64_t{0}; }), HasSubstr("do not fit"));
  EXPECT_THAT(error([](auto& i) { i.packed_bytes = ~uint64_t{0}; }), HasSubstr("tensor of 960"));
  for (const uint32_t alignment : {0u, 3u, 48u, 128u}) {
    EXPECT_THAT(error([=](auto& i) { i.alignment = alignment; }), HasSubstr("alignment"));
  }
  EXPECT_THAT(error([](auto& i) { i.flags = 1; }), HasSubstr("flags"));
  EXPECT_EQ(error([](auto&) {}), "");
}

TEST(PackedLayoutTest, ATensorOfUnknownSizeHasNone) {
  trine_tensor t = Experts();
  t.dims[1] = -1;
  EXPECT_FALSE(PackedLayout::Create(t, Fours(), 64).ok());
  t.dims[1] = 0;
  EXPECT_FALSE(PackedLayout::Create(t, Fours(), 64).ok());
}

}  // namespace
}  // namespace trine
