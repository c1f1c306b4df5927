// Runs the conformance kit on the plugin, with validation and synchronisation validation, which
// must report nothing. TRINE_LONG=1 takes more random cases and, on other paths, all types.
#include "gmock/gmock.h"
#include "tests/vulkan_plugin/vulkan_fixture.h"

namespace trine {
namespace {

class VulkanCheckTest : public VulkanFixture {
 protected:
  static bool IsLong() { return std::getenv("TRINE_LONG") != nullptr; }

  void Check(const std::string& arguments, const std::string& environment = "") {
    const std::string longer = IsLong() ? "--long " : "";
    const Output output = Trine("plugin check --idle 600 --timeout 1700 " + longer + arguments +
                                    " '" TRINE_VULKAN_PLUGIN "'",
                                environment);
    EXPECT_EQ(output.code, 0) << arguments << "\n" << output.text << output.errors;
  }
  void CheckValidated(const std::string& arguments) {
    Check(arguments, Validated());
    EXPECT_TRUE(SaidNothing()) << arguments;
  }
};

// shader_products_test and shader_data_movement_test compare products and rows of all types.
TEST_F(VulkanCheckTest, OpsAreBitEqual) {
  if (IsLong()) return CheckValidated("--filter op/");
  CheckValidated("--filter op/,-matmul/,-gather_rows/");
  CheckValidated(
      "--filter "
      "op/matmul/q8_0,op/matmul/q6_K,op/matmul/bf16,op/moe_matmul/q4_K,op/moe_matmul/mxfp4,"
      "op/gather_rows/f16,op/gather_rows/q5_K");
}

TEST_F(VulkanCheckTest, OpsAreBitEqualOnOtherPaths) {
  const std::string types = IsLong() ? "" : "/q4_K";
  // Products are done without integer dot products, or in many dispatches. To do both at once saves
  // a run, each of which compiles its shaders anew.
  CheckValidated("--filter op/matmul" + types + " --options int_dot=0");
  if (IsLong()) CheckValidated("--filter op/moe_matmul --options int_dot=0");
  CheckValidated(
      "--filter op/transformer --options 'elementwise_workgroup=32;submit_dispatches=2'");
  // Splits products and attention into many dispatches each.
  CheckValidated("--filter op/attention --options submit_operations=20000");
  CheckValidated("--filter op/matmul" + types + " --options submit_operations=1");
  CheckValidated("--filter op/moe_matmul" + types + " --options 'int_dot=0;submit_operations=1'");
  if (IsLong()) CheckValidated("--filter op/moe_matmul --options submit_operations=1");
}

TEST_F(VulkanCheckTest, KeepsTheRules) {
  CheckValidated(
      "--filter "
      "life-cycle/,memory/,copies/,timelines/,submissions/,abi/,graphs/,refusals/,layouts/,"
      "failures/");
}

// Without the layers, which keep something of every plan and instance. Leaves out cycles/backends:
// lavapipe's compiler starts anew with each instance and sometimes keeps a kilobyte or two.
// plugin_test.cc and plugin_faults_test.cc check the plugin itself with a driver that counts.
TEST_F(VulkanCheckTest, LeaksNothing) {
  Check("--filter cycles/devices,cycles/buffers,cycles/timelines,cycles/plans,cycles/runs");
}

TEST_F(VulkanCheckTest, AProcessThatWasNotValidatedIsSeen) {
  EXPECT_FALSE(SaidNothing()) << "nothing has run yet";
  Check("--filter memory/");
  EXPECT_FALSE(SaidNothing()) << "nothing was validated";
}

}  // namespace
}  // namespace trine
