// Tests what `trine serve` says before it listens. tests/server and tests/clients test the rest.
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

class ServeCliTest : public CliFixture {
 protected:
  // Expects a refusal before an address was printed: nothing was listening yet.
  void ExpectRefused(const std::string& arguments, int code, const std::string& part) {
    const Output output =
        Shell("timeout 60 '" TRINE_PROGRAM "' serve --port 0 --device cpu " + arguments);
    EXPECT_EQ(output.code, code) << arguments << "\n" << output.errors;
    EXPECT_THAT(output.errors, HasSubstr(part)) << arguments;
    EXPECT_EQ(output.text, "") << arguments;
    EXPECT_EQ(output.errors.find("listening"), std::string::npos) << output.errors;
  }
  std::string File(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
};

TEST_F(ServeCliTest, WhatCanBeSeenToBeWrongIsRefusedBeforeItListens) {
  ExpectRefused("-m " + (folder_ / "none.gguf").string(), 1, "none.gguf");
  ExpectRefused("-m " + File("text.gguf", "no model at all, but a text"), 1, "text.gguf");
  ExpectRefused("-m " + folder_.string(), 1, folder_.string());
  ExpectRefused("--temp -3", 2, "-3");
  ExpectRefused("--top-p 2", 2, "2");
  ExpectRefused("--logit-bias nonsense", 2, "nonsense");
  ExpectRefused("--chat-template " + (folder_ / "none.jinja").string(), 2, "none.jinja");
  ExpectRefused("--chat-template " + File("bad.jinja", "{% for m in messages %}{{ m.role"), 2,
                "--chat-template");
  ExpectRefused("--kv-lossy", 2, "it is said how KV blocks are kept, and not where");
  ExpectRefused("--kv-store-type q8_0", 2, "it is said how KV blocks are kept, and not where");
}

TEST_F(ServeCliTest, KeysOfAFile) {
  ExpectRefused("--api-key-file " + File("keys", "# nothing\n\n   \n"), 2, "has no key");
  ExpectRefused("--api-key-file " + (folder_ / "no-keys").string(), 2, "no-keys");
}

TEST_F(ServeCliTest, NumbersSayWhatTheyAre) {
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const Output output = Shell("timeout 60 '" TRINE_PROGRAM "' serve " + arguments);
    EXPECT_EQ(output.code, 2) << output.errors;
    EXPECT_THAT(output.errors, HasSubstr(part)) << arguments;
  };
  refused("--port abc", "--port: 'abc' is no whole number from 0 to 65535");
  refused("--port 70000", "'70000' is no whole number from 0 to 65535");
  refused("--port -1", "'-1' is no whole number");
  refused("--header-timeout 0", "--header-timeout");
  refused("--kv-host -1", "--kv-host: '-1' is below 0: expected a number of bytes");
  refused("--kv-host=-1G", "--kv-host: '-1G' is below 0");
  refused("--kv-store x --kv-store-size ' -5M'", "--kv-store-size: ' -5M' is below 0");
  refused("--kv-store x --kv-prefetch -2", "--kv-prefetch: '-2' is below 0");
  EXPECT_THAT(Trine("serve --help").text, HasSubstr("--header-timeout"));
}

}  // namespace
}  // namespace trine
