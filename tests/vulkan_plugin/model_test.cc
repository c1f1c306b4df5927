// Runs models through the Vulkan plugin: the CPU's bits and the CPU's text, for any split and any
// way to use the device.
#include <algorithm>
#include <ostream>

#include "gmock/gmock.h"
#include "tests/vulkan_plugin/vulkan_fixture.h"

namespace trine {
namespace {

struct Answer {
  std::string hash, text;
  bool operator==(const Answer&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Answer& answer) {
  return out << answer.hash << " " << answer.text;
}

class VulkanModelTest : public VulkanFixture {
 protected:
  Answer Generate(const std::string& model, const std::string& split,
                  const std::string& environment = "") {
    const Output output = Trine("generate -m '" + model +
                                    "' -p 'There was once a king who had three sons' -n 8 --temp 0 "
                                    "--logits-hash --json --tensor-split " +
                                    split,
                                environment);
    EXPECT_EQ(output.code, 0) << split << " " << environment << "\n" << output.errors;
    const auto json = nlohmann::json::parse(output.text, nullptr, false);
    if (json.is_discarded()) return {"no answer: " + output.text, output.errors};
    if (split.find("igpu") != std::string::npos) {
      EXPECT_THAT(json["placement"].dump(), ::testing::HasSubstr("igpu0")) << split;
    }
    return {json.value("logits_hash", "no hash"), json.value("text", "no text")};
  }
};

TEST_F(VulkanModelTest, TheShippedModelIsTheCpus) {
  const std::string model = TRINE_SHIPPED_MODEL;
  const Answer expected = Generate(model, "cpu:32");
  for (const char* split : {"igpu:32", "cpu:16,igpu:16", "igpu:1,cpu:31"}) {
    EXPECT_EQ(Generate(model, split), expected) << split;
  }
}

TEST_F(VulkanModelTest, NoTuningChangesABit) {
  const std::string model = TRINE_SHIPPED_MODEL;
  const Answer expected = Generate(model, "cpu:32");
  for (const char* tuning :
       {"int_dot=0", "fuse=0", "elementwise_workgroup=32;gemv_workgroup=128;gemv_rows=1",
        "submit_dispatches=3", "subgroup_size=0",
        // Attention is cut by tokens, and by heads of each token; no part quantises.
        "submit_operations=1000000", "submit_operations=100000"}) {
    EXPECT_EQ(Generate(model, "cpu:24,igpu:8", std::string("TRINE_VULKAN_TUNING='") + tuning + "'"),
              expected)
        << tuning;
  }
}

TEST_F(VulkanModelTest, ValidationHasNothingToSay) {
  const std::string model = TRINE_SHIPPED_MODEL;
  const Answer expected = Generate(model, "cpu:32");
  EXPECT_EQ(Generate(model, "cpu:31,igpu:1", Validated()), expected);
  EXPECT_EQ(Generate(model, "cpu:31,igpu:1", Validated() + " TRINE_VULKAN_TUNING=fuse=0"),
            expected);
  EXPECT_EQ(Generate(model, "cpu:31,igpu:1",
                     Validated() + " TRINE_VULKAN_TUNING=submit_operations=100000"),
            expected);
  EXPECT_TRUE(SaidNothing());
}

// Work goes on while the process ends: nothing that it uses may be freed.
TEST_F(VulkanModelTest, WorkBeyondItsTimeIsASentence) {
  const Output output = Trine("generate -m '" TRINE_SHIPPED_MODEL
                              "' -p 'There was once a king' -n 8 --temp 0 --tensor-split igpu:32",
                              "TRINE_VULKAN_TUNING=timeout_ms=5");
  EXPECT_EQ(output.code, 1) << output.errors;
  EXPECT_THAT(output.errors, ::testing::HasSubstr("has not finished its work in 5 ms"));
}

class VulkanFamilyTest : public VulkanModelTest,
                         public ::testing::WithParamInterface<const char*> {};

TEST_P(VulkanFamilyTest, IsTheCpus) {
  const std::string model = (folder_ / "model.gguf").string();
  const Output made = Trine(std::string("make-model --like ") + GetParam() + " '" + model + "'");
  ASSERT_EQ(made.code, 0) << made.errors;
  const Answer expected = Generate(model, "cpu:100%");
  EXPECT_EQ(Generate(model, "igpu:100%"), expected);
  EXPECT_EQ(Generate(model, "igpu:100%", "TRINE_VULKAN_TUNING=fuse=0"), expected) << "ops apart";
}

INSTANTIATE_TEST_SUITE_P(Families, VulkanFamilyTest,
                         ::testing::Values("tiny-llama-q4_k", "tiny-mixtral", "tiny-qwen2moe",
                                           "tiny-gemma2", "tiny-gpt-oss", "tiny-starcoder2"),
                         [](const ::testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace trine
