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

TEST_F(VulkanCheckTest, OpsOfAllTypesAreBitEqual) { CheckValidated("--filter op/"); }

TEST_F(VulkanCheckTest, OpsAreBitEqualOnOtherPaths) {
  const std::string types = IsLong() ? "" : "/q4_K";
  CheckValidated("--filter op/matmul" + types + " --options int_dot=0");
  CheckValidated("--filter op/moe_matmul" + types + " --options int_dot=0");
  CheckValidated(
      "--filter op/transformer --options 'elementwise_workgroup=32;submit_dispatches=2'");
  // Splits products and attention into many dispatches each.
  CheckValidated("--filter op/attention --options submit_operations=20000");
  CheckValidated("--filter op/matmul" + types + " --options submit_operations=1");
  CheckValidated("--filter op/moe_matmul" + types + " --options submit_operations=1");
}

TEST_F(VulkanCheckTest, KeepsTheRules) {
  for (const char* part : {"life-cycle/", "memory/", "copies/", "timelines/", "submissions/",
                           "abi/", "graphs/", "refusals/", "layouts/", "failures/"}) {
    CheckValidated(std::string("--filter ") + part);
  }
}

// Without the layers, which keep something of every plan and instance. Leaves out cycles/backends:
// lavapipe's compiler starts anew with each instance and sometimes keeps a kilobyte or two.
// plugin_test.cc and plugin_faults_test.cc check the plugin itself with a driver that counts.
TEST_F(VulkanCheckTest, LeaksNothing) {
  for (const char* what : {"devices", "buffers", "timelines", "plans", "runs"}) {
    Check(std::string("--filter cycles/") + what);
  }
}

TEST_F(VulkanCheckTest, AProcessThatWasNotValidatedIsSeen) {
  EXPECT_FALSE(SaidNothing()) << "nothing has run yet";
  Check("--filter memory/");
  EXPECT_FALSE(SaidNothing()) << "nothing was validated";
}

}  // namespace
}  // namespace trine
