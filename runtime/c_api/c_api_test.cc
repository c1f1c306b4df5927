// libtrine.so as an embedding program sees it: through its C header alone.
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "trine/trine.h"

namespace {

TEST(CApiTest, SaysItsVersions) {
  EXPECT_STREQ(trine_version(), TRINE_EXPECTED_VERSION);
  EXPECT_EQ(trine_backend_abi_version(), 0x10000u);
  EXPECT_EQ(trine_numerics_version(), 1u);
}

TEST(CApiTest, DetectGivesJson) {
  char* text = nullptr;
  ASSERT_EQ(trine_detect(nullptr, &text), 0);
  const auto json = nlohmann::json::parse(text);
  trine_string_free(text);
  EXPECT_EQ(json["version"], trine_version());
  EXPECT_FALSE(json["cpu"]["arch"].get<std::string>().empty());
  // The plugins are beside libtrine.so, not beside this test's program.
  bool found = false;
  for (const auto& plugin : json["plugins"]) {
    if (plugin.value("name", "") != "cpu") continue;
    found = true;
    EXPECT_TRUE(plugin["used"]) << plugin["reason"];
    EXPECT_EQ(plugin["found_by"], "beside libtrine.so");
  }
  EXPECT_TRUE(found) << json.dump(2);
}

TEST(CApiTest, OlderAndNewerOptionsAreTaken) {
  char* text = nullptr;
  trine_detect_options options{};
  options.struct_size = 8;  // a program older than both pointers: they must not be read
  options.root = options.plugins = reinterpret_cast<const char*>(16);
  ASSERT_EQ(trine_detect(&options, &text), 0);
  trine_string_free(text);

  struct {
    trine_detect_options known{};
    uint64_t unknown = 0;
  } newer;
  newer.known.struct_size = sizeof(newer);
  newer.known.root = "/nowhere/at/all";
  ASSERT_EQ(trine_detect(&newer.known, &text), 0);
  EXPECT_EQ(nlohmann::json::parse(text)["tier"], "cpu-only");
  trine_string_free(text);
  newer.unknown = 42;  // asks for something unknown
  EXPECT_EQ(trine_detect(&newer.known, &text), 3);
  newer.unknown = 0;
  newer.known.reserved = 1;
  EXPECT_EQ(trine_detect(&newer.known, &text), 3);
}

TEST(CApiTest, BadArgumentsAreRefused) {
  EXPECT_EQ(trine_detect(nullptr, nullptr), 3);
  trine_detect_options options{};
  char* text = reinterpret_cast<char*>(1);
  EXPECT_EQ(trine_detect(&options, &text), 3) << "struct_size is 0";
  EXPECT_EQ(text, nullptr);
  trine_string_free(nullptr);
}

}  // namespace
