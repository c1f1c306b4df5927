#include "detect/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trine::detect {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ParseU64, TakesWholeNumbersOnly) {
  EXPECT_EQ(ParseU64("42\n"), 42u);
  EXPECT_EQ(ParseU64("18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"", " ", "-1", "+1", "1 2", "1x", "0x10", "18446744073709551616"}) {
    EXPECT_EQ(ParseU64(bad), std::nullopt) << bad;
  }
}

TEST(ParseHex, TakesBothSpellings) {
  EXPECT_EQ(ParseHex("0x1002\n"), 0x1002u);
  EXPECT_EQ(ParseHex("ff"), 0xffu);
  for (const char* bad : {"", "0x", "0xg", "0x11223344556677889", "0x0x1"}) {
    EXPECT_EQ(ParseHex(bad), std::nullopt) << bad;
  }
}

TEST(ParseBytes, KnowsUnitsAndOverflow) {
  EXPECT_EQ(ParseBytes("32K\n"), 32768u);
  EXPECT_EQ(ParseBytes("2M"), 2u << 20);
  EXPECT_EQ(ParseBytes("7"), 7u);
  EXPECT_EQ(ParseBytes("K"), std::nullopt);
  EXPECT_EQ(ParseBytes("18446744073709551615G"), std::nullopt);
}

TEST(ParseCpuList, SortsAndRejects) {
  EXPECT_THAT(*ParseCpuList("8,0-2,1\n"), ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(*ParseCpuList("\n"), IsEmpty());
  for (const char* bad : {"3-1", "a", "0-", "-1", "0-65536", "0-4294967295", "1;2"}) {
    EXPECT_EQ(ParseCpuList(bad), std::nullopt) << bad;
  }
}

TEST(ParseCpuList, OverlapsCannotGrowWithoutBound) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "0-65535,";
  EXPECT_EQ(ParseCpuList(text), std::nullopt);
}

TEST(FindKibibytes, ReadsMeminfoLines) {
  EXPECT_EQ(FindKibibytes("MemTotal:  4 kB\nMemFree: 1 kB\n", "MemFree"), 1024u);
  EXPECT_EQ(FindKibibytes("Node 0 MemTotal:  4 kB\n", "MemTotal"), 4096u);
  EXPECT_EQ(FindKibibytes("MemTotal: 4 MB\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(FindKibibytes("MemTotal: 18446744073709551615 kB\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(FindKibibytes("", "MemTotal"), std::nullopt);
}

TEST(CleanText, KeepsReportsPrintable) {
  EXPECT_EQ(CleanText("  a\tb\xff\x01 \n"), "a b??");
  EXPECT_EQ(CleanText("abcdef", 3), "abc");
}

TEST(FormatBytes, PicksTheUnit) {
  EXPECT_EQ(FormatBytes(uint64_t{4} << 30), "4.0 GiB");
  EXPECT_EQ(FormatBytes(uint64_t{512} << 20), "512.0 MiB");
}

}  // namespace
}  // namespace trine::detect
