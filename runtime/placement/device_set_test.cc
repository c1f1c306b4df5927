#include "runtime/placement/device_set.h"

#include <sys/resource.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The CPU backend, which has one device, as if it had shown `devices` when it was probed.
Inventory Probed(uint32_t devices) {
  Registry registry;
  registry.plugins.emplace_back();
  PluginFinding& plugin = registry.plugins.back();
  plugin.path = TRINE_CPU_PLUGIN;
  plugin.accepted = true;
  plugin.probe.name = "cpu";
  plugin.probe.devices.resize(devices);
  for (uint32_t i = 0; i < devices; ++i) {
    DeviceFinding device;
    device.index = i;
    device.info.tier = i == 0 ? TRINE_TIER_CPU : TRINE_TIER_OTHER;
    device.used = true;
    registry.devices.push_back(device);
  }
  return TakeInventory({}, std::move(registry));
}

std::string OpenLast() {
  DeviceSet devices(Probed(2), 1, nullptr);
  EXPECT_TRUE(devices.Open("cpu").ok());
  const auto missing = devices.Open("other0");
  EXPECT_FALSE(missing.ok());
  return std::string(missing.status().message());
}

TEST(DeviceSetTest, ADeviceThatIsGoneSinceItWasProbedIsSaidToBe) {
  const std::string text = OpenLast();
  EXPECT_THAT(text, HasSubstr("cpu saw 2 devices when it was probed, and sees 1 device in this "
                              "process"));
}

TEST(DeviceSetTest, ALimitToMemoryIsNamedBesideIt) {
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &old), 0);
  if (old.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "there is a limit already";
  EXPECT_THAT(OpenLast(), Not(HasSubstr("ulimit")));
  rlimit limited = old;
  limited.rlim_cur = rlim_t{1} << 48;  // more than even a sanitizer uses
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  const std::string text = OpenLast();
  setrlimit(RLIMIT_AS, &old);
  EXPECT_THAT(text, HasSubstr("limited to 268435456 MiB (ulimit -v)"));
}

TEST(DeviceSetTest, WhatPinsNothingIsSaid) {
  for (const auto& [value, is_said] :
       {std::pair{"0", false}, {"1", false}, {"", false}, {"yes", true}, {"01", true}}) {
    std::vector<std::string> log;
    setenv("TRINE_PIN", value, 1);
    const DeviceSet devices(Probed(1), 1,
                            [&](uint32_t, const std::string& text) { log.push_back(text); });
    unsetenv("TRINE_PIN");
    if (is_said) {
      EXPECT_THAT(log, ElementsAre(HasSubstr(absl::StrCat("TRINE_PIN=", value, " is neither"))));
    } else {
      EXPECT_THAT(log, IsEmpty());
    }
  }
}

}  // namespace
}  // namespace trine
