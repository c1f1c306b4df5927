#include "dispatch/devices/inventory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::EndsWith;

class FindDeviceTest : public ::testing::Test {
 protected:
  FindDeviceTest() { Device(Plugin("cpu", ""), TRINE_TIER_CPU, true, false, "serves"); }

  // Adds a plugin. `refusal`: "" if it is accepted.
  size_t Plugin(const std::string& name, const std::string& refusal) {
    PluginFinding plugin;
    plugin.path = "/p/libtrine-backend-" + name + ".so";
    plugin.accepted = refusal.empty();
    plugin.reason = refusal.empty() ? "loaded, but it sees no device" : refusal;
    if (refusal.empty()) {
      plugin.probe.name = name;
    } else {
      plugin.probe.status = absl::UnavailableError(refusal);
    }
    registry_.plugins.push_back(plugin);
    return registry_.plugins.size() - 1;
  }
  void Device(size_t plugin, uint32_t tier, bool used, bool on_request, const char* reason) {
    DeviceFinding found;
    found.plugin = plugin;
    found.info.tier = tier;
    found.used = used;
    found.on_request = on_request;
    found.reason = reason;
    registry_.devices.push_back(found);
  }
  // Returns the tier name of the device, or the error message.
  std::string Find(const std::string& name) {
    const Inventory inventory = TakeInventory({}, registry_);
    const auto device = FindDevice(inventory, name);
    return device.ok() ? (*device)->tier_name : std::string(device.status().message());
  }

  Registry registry_;
};

TEST_F(FindDeviceTest, KnowsEveryName) {
  Device(Plugin("vulkan", ""), TRINE_TIER_IGPU, true, false, "serves");
  for (const char* name : {"igpu", "igpu0", "IGPU0", "iGPU", "Vulkan0"}) {
    EXPECT_EQ(Find(name), "igpu0") << name;
  }
  EXPECT_EQ(Find("cpu"), "cpu");
  EXPECT_EQ(Find("CPU"), "cpu");
  EXPECT_EQ(Find("dgpu"), "no device is called 'dgpu'; there are: cpu (CPU), igpu0 (Vulkan0)");
}

TEST_F(FindDeviceTest, APluginThatWasRefusedIsNamedWithItsReason) {
  Plugin("vulkan", "it could not be opened: options are key=value");
  EXPECT_EQ(Find("igpu"),
            "no device is called 'igpu'; there are: cpu (CPU); vulkan: it could not be opened: "
            "options are key=value");
}

TEST_F(FindDeviceTest, SoIsOneThatSeesNothingOrNothingUsable) {
  Plugin("hip", "");
  Device(Plugin("vulkan", ""), TRINE_TIER_OTHER, false, false, "too old");
  EXPECT_THAT(Find("igpu"),
              EndsWith("cpu (CPU); hip: loaded, but it sees no device; vulkan: too old"));
}

TEST_F(FindDeviceTest, OneOfTheSameNameIsNoFinding) {
  const size_t second = Plugin("cpu", "shadowed");
  registry_.plugins[second].probe.status = absl::OkStatus();
  EXPECT_EQ(Find("igpu"), "no device is called 'igpu'; there are: cpu (CPU)");
}

TEST_F(FindDeviceTest, ManyFindingsAreCounted) {
  for (const char* name : {"a", "b", "c", "d", "e"}) Plugin(name, "broken");
  const std::string text = Find("igpu");
  EXPECT_THAT(text, EndsWith("; a: broken; b: broken; c: broken; `trine detect` has 2 more"));
}

TEST_F(FindDeviceTest, ADeviceThatIsNotUsedSaysWhy) {
  Device(Plugin("vulkan", ""), TRINE_TIER_IGPU, false, false, "too old");
  for (const char* name : {"igpu", "igpu0", "Vulkan0"}) {
    EXPECT_EQ(Find(name), "device '" + std::string(name) + "' is not used: too old");
  }
}

TEST_F(FindDeviceTest, ADeviceToBeNamedIsListedAndMarked) {
  Device(Plugin("vulkan", ""), TRINE_TIER_IGPU, false, true, "a software device");
  EXPECT_EQ(Find("igpu"), "igpu0");
  EXPECT_THAT(Find("dgpu"),
              EndsWith("there are: cpu (CPU), igpu0 (Vulkan0, only where it is named)"));
}

}  // namespace
}  // namespace trine
