// Tests which plugins an engine probes: those that may have what it could use.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

class PluginProbingTest : public testing::Test {
 protected:
  PluginProbingTest() : file_(MakeTinyModel(TinyModelSpec{}).ToBytes()) {
    unsetenv("TRINE_FIXTURE_HARDWARE");
    std::filesystem::create_directory(folder_);
    std::filesystem::create_symlink(TRINE_HARDWARE_PLUGIN,
                                    folder_ / "libtrine-backend-hardware.so");
    options_ = TestOptions(file_.path());
    options_.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, folder_};
    options_.threads = 1;
  }
  ~PluginProbingTest() override {
    unsetenv("TRINE_FIXTURE_HARDWARE");
    std::filesystem::remove_all(folder_);
  }
  // Returns true when the plugin for absent hardware was probed.
  bool IsProbed() {
    const auto engine = MustLoad(options_);
    if (engine == nullptr) return false;
    const auto& plugins = engine->inventory().registry.plugins;
    EXPECT_EQ(plugins.size(), 2u);
    EXPECT_TRUE(plugins[0].accepted) << plugins[0].reason;
    return plugins.back().accepted;
  }

  const std::filesystem::path folder_ =
      testing::TempDir() + "plugin_probing_test." + std::to_string(getpid());
  TempFile file_;
  EngineOptions options_;
};

TEST_F(PluginProbingTest, WithoutHardwareOnlyWhereDevicesAreNamed) {
  options_.placement.devices.clear();
  EXPECT_FALSE(IsProbed());
  options_.placement.devices = {"cpu"};
  EXPECT_FALSE(IsProbed());
  options_.placement.split = SplitOf("cpu:100%");
  EXPECT_TRUE(IsProbed());
}

TEST_F(PluginProbingTest, WhoeverLimitsOrMovesSomethingNamesDevices) {
  options_.placement.devices = {"cpu"};
  options_.placement.memory_limits = LimitsOf("cpu:4G");
  EXPECT_TRUE(IsProbed());
  options_.placement.memory_limits = {};
  options_.faults = "cpu:slow=1@run=1000";
  EXPECT_TRUE(IsProbed());
}

TEST_F(PluginProbingTest, WhereThereMayBeHardware) {
  options_.placement.devices = {"cpu"};
  setenv("TRINE_FIXTURE_HARDWARE", "1", 1);
  EXPECT_TRUE(IsProbed());
}

TEST_F(PluginProbingTest, WhoWantsToBeToldOfAllDevicesIs) {
  options_.placement.devices = {"cpu"};
  options_.explain = true;
  EXPECT_TRUE(IsProbed());
}

}  // namespace
}  // namespace trine
