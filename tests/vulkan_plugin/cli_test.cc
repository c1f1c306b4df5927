// Tests what the trine command says about a Vulkan device: where it is listed, what it gets, and
// why it is missing.
#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "tests/vulkan_plugin/vulkan_fixture.h"

namespace trine {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class VulkanCliTest : public VulkanFixture {
 protected:
  void SetUp() override {
    VulkanFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const Output made = Trine("make-model --like tiny-llama-q4_k '" + model_ + "'");
    ASSERT_EQ(made.code, 0) << made.errors;
  }
  Output Generate(const std::string& arguments, const std::string& environment = "") {
    return Trine("generate -m '" + model_ + "' -p a -n 1 --temp 0 " + arguments, environment);
  }

  const std::string model_ = (folder_ / "tiny.gguf").string();
};

TEST_F(VulkanCliTest, ItIsListedAsItIsNamed) {
  const Output listed = Trine("generate --list-devices");
  EXPECT_THAT(listed.text, ContainsRegex("\nigpu0: .* \\(Vulkan0"));
  EXPECT_THAT(Generate("-ts nowhere:3").errors, HasSubstr(", igpu0 (Vulkan0"));
  const auto report = nlohmann::json::parse(Trine("detect --json").text, nullptr, false);
  const bool marked = listed.text.find("(Vulkan0, only where it is named)") != std::string::npos;
  for (const auto& device : report["devices"]) {
    if (device["name"] != "igpu0") continue;
    EXPECT_EQ(marked, !device["used"].get<bool>());
  }
}

TEST_F(VulkanCliTest, WhyItIsNotThereIsSaidWhereItIsNamed) {
  const Output refused = Generate("-ts igpu:3", "TRINE_VULKAN_TUNING=rubbish");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("; vulkan: "));
  EXPECT_THAT(refused.errors, HasSubstr("options are key=value"));
  const Output layers = Generate("-ngl 3", "TRINE_VULKAN_TUNING=rubbish");
  EXPECT_EQ(layers.code, 0);
  EXPECT_THAT(layers.errors, HasSubstr("stay on the CPU; "));
  EXPECT_THAT(layers.errors, HasSubstr("; vulkan: it could not be opened"));
}

TEST_F(VulkanCliTest, WhyThereIsNoDriverIsSaid) {
  const Output output = Trine("detect", "VK_DRIVER_FILES=/none.json VK_ICD_FILENAMES=/none.json");
  EXPECT_EQ(output.code, 0);
  EXPECT_THAT(output.text, HasSubstr("it sees no device: vulkan: no Vulkan driver"));
}

TEST_F(VulkanCliTest, ItIsSaidToGetNothing) {
  for (const char* split : {"igpu:0,cpu:3", "cpu:3,igpu:0L", "cpu:100%,igpu:0%"}) {
    const Output output = Generate(std::string("-ts ") + split);
    EXPECT_EQ(output.code, 0) << output.errors;
    EXPECT_EQ(output.errors, "trine: tensor split: igpu0 gets no layer\n") << split;
  }
  const Output bytes = Generate("-ts igpu:1K,cpu:3");
  EXPECT_EQ(bytes.code, 0);
  EXPECT_THAT(bytes.errors, ContainsRegex("igpu0 gets no layer: layer 0 has [0-9]+ KiB"));
  EXPECT_EQ(Generate("-ts cpu:1,igpu:1,cpu:0,cpu:1").errors,
            "Tri-Tier: CPU(1L) + iGPU0(1L, prompts by cpu) + CPU(1L)\n");
}

TEST_F(VulkanCliTest, ABenchmarkNamesChipAndDriver) {
  const Output output =
      Trine("bench -m '" + model_ + "' -p 2 -n 0 -r 1 --no-bandwidth -t 1 -ts igpu:3");
  ASSERT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.text, ContainsRegex("\n[^,;\n]+, [^;\n]+; igpu0: [^,;\n]+.*; trine [0-9]"));
  EXPECT_THAT(output.text, Not(HasSubstr("\n, ;")));
}

// A layer's cache is more than the device can bind, with packed weights or without.
TEST_F(VulkanCliTest, ARefusalIsSaidOnce) {
  const Output output = Generate("-c 2000000 -ts cpu:2,igpu:1");
  EXPECT_EQ(std::count(output.errors.begin(), output.errors.end(), '\n'), 1) << output.errors;
  EXPECT_THAT(output.errors, Not(HasSubstr("packed")));
}

}  // namespace
}  // namespace trine
