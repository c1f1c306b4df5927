#include "dispatch/devices/split_spec.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

// Returns "cpu[0,4) igpu[4,16)" or the error.
std::string Resolve(const std::string& text, int layers, const std::vector<std::string>& gpus = {},
                    uint64_t layer_bytes = 100) {
  const auto shares = ParseSplit(text);
  if (!shares.ok()) return std::string(shares.status().message());
  const auto ranges =
      ResolveSplit(*shares, std::vector<uint64_t>(static_cast<size_t>(layers), layer_bytes), gpus);
  if (!ranges.ok()) return std::string(ranges.status().message());
  std::string out;
  for (const LayerRange& r : *ranges) {
    absl::StrAppend(&out, out.empty() ? "" : " ", r.device, "[", r.begin, ",", r.end, ")");
  }
  return out;
}

TEST(SplitSpecTest, NamesTiersInModelOrder) {
  EXPECT_EQ(Resolve("cpu:4,igpu:12,dgpu:16", 32), "cpu[0,4) igpu[4,16) dgpu[16,32)");
  EXPECT_EQ(Resolve("dgpu0:16L, cpu:16", 32), "dgpu0[0,16) cpu[16,32)");
  EXPECT_EQ(Resolve("cpu:32", 32), "cpu[0,32)");
}

TEST(SplitSpecTest, AShareOfNothingHasAnEmptyRange) {
  EXPECT_EQ(Resolve("cpu:0,igpu:8", 8), "cpu[0,0) igpu[0,8)");
  EXPECT_EQ(Resolve("igpu:1K,cpu:8", 8, {}, 2000), "igpu[0,0) cpu[0,8)");
  EXPECT_EQ(Resolve("cpu:99%,igpu:1%", 8), "cpu[0,8) igpu[8,8)");
}

TEST(SplitSpecTest, AWrongSumStatesTheRightOne) {
  EXPECT_THAT(Resolve("cpu:4,igpu:12", 32), HasSubstr("places 16 layers, but the model has 32"));
  EXPECT_THAT(Resolve("cpu:40", 32), HasSubstr("add up to 32"));
  EXPECT_THAT(Resolve("cpu:1000000000000", 32), HasSubstr("add up to 32"));
}

TEST(SplitSpecTest, AWrongSumOfBytesSaysWhatLayersTake) {
  const std::string text = Resolve("cpu:1M,dgpu:5M", 32, {}, 2 << 20);
  EXPECT_THAT(text, HasSubstr("places 2 layers, but the model has 32"));
  EXPECT_THAT(text, HasSubstr("1.0 MiB on cpu is 0 layers (layer 0 takes 2.0 MiB)"));
  EXPECT_THAT(text, HasSubstr("5.0 MiB on dgpu is 2 layers (and layer 2 takes 2.0 MiB)"));
  EXPECT_THAT(text, HasSubstr("all layers take 64.0 MiB"));
  EXPECT_THAT(text, HasSubstr("add up to 32 layers"));
  EXPECT_THAT(Resolve("cpu:1G,dgpu:4", 32, {}, 2 << 20), HasSubstr("1.0 GiB on cpu is 32 layers;"));
}

TEST(SplitSpecTest, TakesPercentAndBytes) {
  EXPECT_EQ(Resolve("cpu:25%,dgpu:75%", 32), "cpu[0,8) dgpu[8,32)");
  EXPECT_EQ(Resolve("cpu:33.3%,dgpu:66.7%", 10), "cpu[0,3) dgpu[3,10)");
  EXPECT_THAT(Resolve("cpu:25%,dgpu:70%", 32), HasSubstr("add up to 95 %"));
  EXPECT_EQ(Resolve("dgpu:1K,cpu:2", 12), "dgpu[0,10) cpu[10,12)");
  EXPECT_EQ(Resolve("dgpu:1G,cpu:4", 12, {}, uint64_t{1} << 27), "dgpu[0,8) cpu[8,12)");
  EXPECT_THAT(Resolve("cpu:50%,dgpu:3", 6), HasSubstr("can't be mixed"));
}

TEST(SplitSpecTest, ABareListIsAboutTheGpus) {
  EXPECT_EQ(Resolve("3,1", 32, {"dgpu0", "igpu0"}), "dgpu0[0,24) igpu0[24,32)");
  EXPECT_THAT(Resolve("3,1", 32, {}), HasSubstr("2 proportions for 0 GPUs"));
  EXPECT_THAT(Resolve("0,0", 32, {"a", "b"}), HasSubstr("all 0"));
}

TEST(SplitSpecTest, NonsenseIsNamed) {
  EXPECT_THAT(Resolve("", 4), HasSubstr("empty part"));
  EXPECT_THAT(Resolve("cpu:4,,", 4), HasSubstr("empty part"));
  EXPECT_THAT(Resolve("cpu:", 4), HasSubstr("'cpu:' has no amount"));
  for (const char* amount : {"-1", "+1", "1.5", "1.5L", "nan", "inf", "1e1", "1e300", "0x10", "L",
                             "G", "1.2.3G", ".", "1e2%", "99999999999999999999", "4g"}) {
    const std::string text = Resolve(absl::StrCat("cpu:", amount, ",igpu:1"), 4);
    EXPECT_THAT(text, HasSubstr(absl::StrCat("has a wrong amount, '", amount, "'"))) << text;
    EXPECT_THAT(text, HasSubstr("whole layers (4 or 4L), bytes (12G; K, M, G, T) or a share"));
  }
  EXPECT_EQ(Resolve("dgpu:1.5K,cpu:2", 5, {}, 512), "dgpu[0,3) cpu[3,5)");
  EXPECT_THAT(Resolve("1e1,1", 4, {"a", "b"}), HasSubstr("'1e1' is neither"));
  EXPECT_THAT(Resolve(":4", 4), HasSubstr("names no device"));
  EXPECT_THAT(Resolve("banana", 4), HasSubstr("neither"));
  EXPECT_THAT(Resolve("cpu:2,1", 4), HasSubstr("mixes"));
}

}  // namespace
}  // namespace trine
