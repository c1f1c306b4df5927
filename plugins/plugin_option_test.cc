#include "plugins/plugin_option.h"

#include "gmock/gmock.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const std::string& text) {
  return std::string(ParsePluginOption(text).status().message());
}

TEST(PluginOptionTest, ReadsBothForms) {
  const auto plain = ParsePluginOption("threads=4");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->plugin, "");
  EXPECT_EQ(plain->setting, "threads=4");
  const auto named = ParsePluginOption("vulkan:cache=/a:b=c");
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->plugin, "vulkan");
  EXPECT_EQ(named->setting, "cache=/a:b=c");
  EXPECT_EQ(ParsePluginOption("path=/a:b")->plugin, "");
}

TEST(PluginOptionTest, SaysWhatIsMissing) {
  EXPECT_THAT(Refusal(""), HasSubstr("there is no '='"));
  EXPECT_THAT(Refusal("vulkan:threads"), HasSubstr("there is no '='"));
  EXPECT_THAT(Refusal("=4"), HasSubstr("there is no name"));
  EXPECT_THAT(Refusal("vulkan:=4"), HasSubstr("there is no name"));
  EXPECT_THAT(Refusal(":threads=4"), HasSubstr("there is no plugin"));
  EXPECT_THAT(Refusal("a=1;b=2"), HasSubstr("a ';' separates options"));
  EXPECT_FALSE(ParsePluginOptions("a=1;b").ok());
}

TEST(PluginOptionTest, AnOptionIsForItsPluginAlone) {
  const auto options = ParsePluginOptions("blas:threads=4;spin=1;blas:kernel=a");
  ASSERT_TRUE(options.ok());
  ASSERT_EQ(options->size(), 3u);
  const Candidate blas = {"/p/libtrine-backend-blas.so", "", false};
  const Candidate other = {"/p/libtrine-backend-blas2.so", "", false};
  const Candidate named = {"/q/mine.so", "", true};
  EXPECT_EQ(OptionsFor(*options, blas), "threads=4;kernel=a");
  EXPECT_EQ(OptionsFor(*options, other), "");
  EXPECT_EQ(OptionsFor(*options, named), "spin=1");
}

}  // namespace
}  // namespace trine
