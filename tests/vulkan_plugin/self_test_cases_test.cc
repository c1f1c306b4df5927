// Checks that the self-test is complete: a device is exact only for what it was seen to compute.
#include <map>
#include <set>
#include <string>

#include "backends/common/fusion.h"
#include "backends/common/op_attributes.h"
#include "backends/vulkan/device/tuning.h"
#include "backends/vulkan/ops/op_runs.h"
#include "backends/vulkan/testing/device_fixtures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/vulkan/spirv/shaders.h"
#include "plugins/self_test/self_test_graph.h"

namespace trine::vulkan {
namespace {

using backends::IsQuantizedProduct;

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

// Shaders that no device's self-test can reach.
const std::map<std::string, std::string> kExceptions = {
    {"add_f32", "an example; no op uses it"},
};

// What the self-test runs on a device: shaders, and groups as profiles name them, with '!' where a
// quantised or stored value is also written.
struct Used {
  std::set<std::string> shaders, groups;
  std::set<std::string> quantizing_attention;  // shaders that quantise what attention makes
};

Used UsedOn(const RunChoices& choices) {
  Used used;
  self_test::AddCases([&](const self_test::TestGraph& test) {
    const std::vector<trine_slot> slots = test.PlainSlots();
    const trine_graph abi = test.Abi(TRINE_NUMERICS_FAST, slots, test.tensors());
    sdk::Graph graph;
    trine_error err{};
    ASSERT_EQ(sdk::CopyGraph(&abi, &graph, &err), TRINE_OK) << test.name() << ": " << err.message;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      ASSERT_EQ(sdk::CheckOp(graph, i), "") << test.name();
      ASSERT_EQ(WhyNotOp(choices, graph, i), "") << test.name();
    }
    const RunScratch scratch = ScratchOf(choices, graph);
    const Misalignment misaligned(graph.tensors.size(), 0);
    const OpRuns maker(choices, graph, scratch, misaligned);
    for (const OpGroup& group : backends::GroupOps(graph, /*fuse=*/true)) {
      std::vector<OpRun> runs;
      ASSERT_EQ(maker.Add(group, nullptr, &runs), "") << test.name();
      std::string name = backends::GroupName(graph, group);
      const bool product = IsQuantizedProduct(graph, graph.ops[group.first]);
      const bool may_leave_out = (group.quantizes && !product) || group.count == 4;
      if (may_leave_out && group.writes) name += "!";
      used.groups.insert(name);
      for (const OpRun& run : runs) used.shaders.insert(run.run.shader->name);
      if (group.kind == OpGroup::Kind::kAttention) {
        used.quantizing_attention.insert(runs.back().run.shader->name);
      }
    }
  });
  return used;
}

RunChoices ChoicesOf(const DeviceCaps& caps) {
  RunChoices choices;
  choices.caps = &caps;
  choices.tuning = ChooseTuning(caps);
  choices.products = ChooseProductTuning(caps, choices.tuning);
  return choices;
}

class SelfTestCasesTest : public ::testing::TestWithParam<DeviceQuery (*)()> {
 protected:
  const DeviceCaps caps_ = MakeDeviceCaps(GetParam()());
};

TEST_P(SelfTestCasesTest, UseEveryExactShaderThatTheDeviceMayUse) {
  RunChoices choices = ChoicesOf(caps_);
  for (const bool int_dot : {false, true}) {
    if (int_dot && !caps_.int_dot) continue;
    choices.products.int_dot = int_dot;
    const Used used = UsedOn(choices);
    std::set<std::string> names;
    for (const Shader* shader : AllShaders()) names.insert(shader->name);
    for (const Shader* shader : AllShaders()) {
      const std::string name = shader->name;
      // A device uses integer dot products for all products or for none.
      const bool of_others = int_dot ? names.contains(name + "_dot") : name.ends_with("_dot");
      const bool expected = shader->exact && !of_others && !kExceptions.contains(name);
      EXPECT_EQ(used.shaders.contains(name), expected) << name << ", int_dot=" << int_dot;
    }
  }
}

TEST_P(SelfTestCasesTest, PutOpsTogetherInEveryWay) {
  EXPECT_THAT(UsedOn(ChoicesOf(caps_)).groups,
              IsSupersetOf({"rms_norm", "add+rms_norm+quantize", "add+layer_norm+quantize!", "glu",
                            "glu+quantize", "glu+quantize!", "attention", "attention+quantize!",
                            "rope", "rope+rope", "kv_store", "kv_store+kv_store",
                            "rope+rope+kv_store+kv_store", "rope+rope+kv_store+kv_store!"}));
}

// A shader quantises under a constant, which makes it another program.
TEST_P(SelfTestCasesTest, QuantiseInEveryShaderOfAttention) {
  EXPECT_THAT(UsedOn(ChoicesOf(caps_)).quantizing_attention,
              ElementsAre("attention_join", "attention_rows4", "attention_rows8"));
}

INSTANTIATE_TEST_SUITE_P(Devices, SelfTestCasesTest,
                         ::testing::Values(testing::IntelXe1, testing::IntelXe2,
                                           testing::AmdRdna2Apu, testing::AmdRdna3Apu,
                                           testing::NvidiaDiscrete, testing::Lavapipe));

}  // namespace
}  // namespace trine::vulkan
