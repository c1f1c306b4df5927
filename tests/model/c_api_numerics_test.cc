// Tests fast numerics and options for plugins in the C API. The fixture's device computes the CPU's
// bits, but says that its results are only near the contract's.
#include <cstddef>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/c_api_codes.h"
#include "tests/model/temp_file.h"
#include "tests/model/tiny_model.h"
#include "trine/trine.hpp"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CApiNumericsTest : public testing::Test {
 protected:
  CApiNumericsTest() : file_(MakeTinyModel(*TinyModelByName("qwen2")).ToBytes()) {}

  trine_engine_options Options(const char* numerics) const {
    trine_engine_options options{};
    options.struct_size = sizeof(options);
    options.model = file_.path().c_str();
    options.context = 128;
    options.plugins = TRINE_PRODUCTS_PLUGIN;
    options.dispatch = "4";  // tokens, so the device helps with prompts
    options.numerics = numerics;
    return options;
  }

  // Reads a prompt and writes three tokens. Returns the hash of the logits.
  static std::string Hash(const api::Engine& engine) {
    trine_session_options session_options{};
    session_options.flags = TRINE_SESSION_IGNORE_END | TRINE_SESSION_LOGITS_HASH;
    auto session = engine.OpenSession(session_options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    EXPECT_TRUE(session->AppendText("once upon a time in a forest").ok());
    api::GenerateOptions options;
    options.max_tokens = 3;
    const auto result = session->Generate(options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return session->logits_hash();
  }

  static void ExpectRefused(const trine_engine_options& options, int32_t code,
                            const std::string& message) {
    const auto opened = api::Engine::Open(options);
    ASSERT_FALSE(opened.ok()) << message;
    EXPECT_EQ(opened.status().code(), code);
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(message));
  }

  const TempFile file_;
};

TEST_F(CApiNumericsTest, FastDevicesHelpWhereTheyAreAllowed) {
  std::string digits;
  for (const char* numerics : {static_cast<const char*>(nullptr), "", "exact"}) {
    auto engine = api::Engine::Open(Options(numerics));
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    const std::string hash = Hash(*engine);
    EXPECT_THAT(hash, StartsWith("1-"));
    EXPECT_STREQ(engine->segments()[0].helper, "");
    digits = hash.substr(2);
  }
  auto engine = api::Engine::Open(Options("fast"));
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  EXPECT_EQ(Hash(*engine), "fast-" + digits) << "it computes the same bits";
  EXPECT_STREQ(engine->segments()[0].helper, "products0");
  EXPECT_GT(engine->segments()[0].detours, 0u);
}

TEST_F(CApiNumericsTest, AFastDeviceIsRefusedByNameWithoutPermission) {
  trine_engine_options options = Options("exact");
  options.devices = "cpu,products0";
  ExpectRefused(
      options, kNotFound,
      "device 'products0' is not used: fast numerics only: not used without --numerics fast");
}

TEST_F(CApiNumericsTest, OtherWordsAreRefused) {
  for (const char* word : {"slow", "Fast", "exact,fast", " fast"}) {
    ExpectRefused(Options(word), kInvalidArgument,
                  "numerics is '" + std::string(word) + "': it is one of exact, fast");
  }
}

TEST_F(CApiNumericsTest, OptionsReachThePlugin) {
  trine_engine_options options = Options("exact");
  options.plugins = TRINE_EASY_PLUGIN;
  options.devices = "cpu";
  for (const char* given : {"x=1", "accepts-unknown-option:x=1", "x=1;y=2;", ""}) {
    options.plugin_options = given;
    const auto opened = api::Engine::Open(options);
    EXPECT_TRUE(opened.ok()) << given << ": " << opened.status().message();
  }
}

TEST_F(CApiNumericsTest, OptionsWithoutEffectAreRefused) {
  const auto refused = [&](const char* given, const std::string& message) {
    trine_engine_options options = Options("fast");
    options.plugin_options = given;
    ExpectRefused(options, kInvalidArgument, message);
  };
  refused("color=blue", "the cpu backend has no options; given: color=blue");
  refused("products:color=blue", "the plugin option 'color=blue' has no effect: ");
  refused("nowhere:x=1", "the plugin option 'x=1' has no effect: there is no plugin 'nowhere'");
  refused("color", "'color' is no option for a plugin, [PLUGIN:]NAME=VALUE: there is no '='");
}

// A program that was compiled before the members were there has none of them.
TEST_F(CApiNumericsTest, OlderOptionsAreExact) {
  trine_engine_options options = Options("slow");  // not read
  options.plugin_options = "color";
  options.struct_size = offsetof(trine_engine_options, numerics);
  trine_engine* engine = nullptr;
  trine_failure why{};
  why.struct_size = sizeof(why);
  EXPECT_EQ(trine_engine_open(&options, &engine, &why), 0) << why.message;
  trine_engine_close(engine);
}

}  // namespace
}  // namespace trine
