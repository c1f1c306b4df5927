#include "plugins/registry.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

trine_device_info Chip(uint32_t tier, const char* name, const char* pci, uint32_t flags = 0) {
  trine_device_info info{};
  info.struct_size = sizeof(info);
  info.tier = tier;
  info.flags = flags;
  info.numerics = TRINE_NUMERICS_EXACT;
  std::strcpy(info.name, name);
  std::strcpy(info.pci_id, pci);
  return info;
}

ProbeResult Sees(const std::string& name, std::vector<trine_device_info> devices) {
  ProbeResult result;
  result.name = name;
  result.version = "1";
  result.abi_version = TRINE_ABI_VERSION;
  result.numerics_version = TRINE_NUMERICS_VERSION;
  result.devices = std::move(devices);
  return result;
}

class RegistryTest : public ::testing::Test {
 protected:
  RegistryTest() { unsetenv("TRINE_BACKEND_ORDER"); }
  ~RegistryTest() override { unsetenv("TRINE_BACKEND_ORDER"); }

  void Plugin(const std::string& path, ProbeResult result) {
    options_.search.explicit_paths.push_back(path);
    probes_[path] = std::move(result);
  }
  Registry Discover() {
    options_.search.use_default_folders = false;
    options_.probe = [this](const std::string& path) { return probes_.at(path); };
    return DiscoverPlugins(options_);
  }
  static const DeviceFinding& Find(const Registry& registry, const std::string& plugin) {
    for (const DeviceFinding& device : registry.devices) {
      if (registry.plugins[device.plugin].probe.name == plugin) return device;
    }
    static const DeviceFinding none;
    return none;
  }
  RegistryOptions options_;
  std::map<std::string, ProbeResult> probes_;
};

TEST_F(RegistryTest, DiscreteChipGoesToHip) {
  Plugin("/p/vulkan", Sees("vulkan", {Chip(TRINE_TIER_DGPU, "Navi 31", "0000:03:00.0")}));
  Plugin("/p/hip", Sees("hip", {Chip(TRINE_TIER_DGPU, "gfx1100", "0000:03:00.0")}));
  const Registry registry = Discover();
  EXPECT_TRUE(Find(registry, "hip").used);
  EXPECT_FALSE(Find(registry, "vulkan").used);
  EXPECT_THAT(Find(registry, "vulkan").reason, HasSubstr("same chip is used through hip"));
}

TEST_F(RegistryTest, IntegratedChipGoesToVulkan) {
  Plugin("/p/hip", Sees("hip", {Chip(TRINE_TIER_IGPU, "gfx1103", "0000:c1:00.0")}));
  Plugin("/p/vulkan", Sees("vulkan", {Chip(TRINE_TIER_IGPU, "Phoenix", "0000:c1:00.0")}));
  const Registry registry = Discover();
  EXPECT_TRUE(Find(registry, "vulkan").used);
  EXPECT_FALSE(Find(registry, "hip").used);
}

TEST_F(RegistryTest, OrderCanBeTurned) {
  Plugin("/p/hip", Sees("hip", {Chip(TRINE_TIER_DGPU, "gfx1100", "0000:03:00.0")}));
  Plugin("/p/vulkan", Sees("vulkan", {Chip(TRINE_TIER_DGPU, "Navi 31", "0000:03:00.0")}));
  Plugin("/p/vendor", Sees("vendor", {Chip(TRINE_TIER_DGPU, "Navi 31", "0000:03:00.0")}));
  setenv("TRINE_BACKEND_ORDER", "vendor, vulkan", 1);
  const Registry registry = Discover();
  EXPECT_TRUE(Find(registry, "vendor").used);
  EXPECT_FALSE(Find(registry, "vulkan").used);
  EXPECT_FALSE(Find(registry, "hip").used);
}

TEST_F(RegistryTest, PartitionsOfOneChipAreKept) {
  Plugin("/p/hip", Sees("hip", {Chip(TRINE_TIER_DGPU, "part 0", "0000:03:00.0"),
                                Chip(TRINE_TIER_DGPU, "part 1", "0000:03:00.0")}));
  const Registry registry = Discover();
  EXPECT_TRUE(registry.devices[0].used && registry.devices[1].used);
}

TEST_F(RegistryTest, UuidIdentifiesWherePciDoesNot) {
  trine_device_info a = Chip(TRINE_TIER_DGPU, "a", ""), b = Chip(TRINE_TIER_DGPU, "b", "");
  a.uuid[3] = b.uuid[3] = 9;
  Plugin("/p/vulkan", Sees("vulkan", {a}));
  Plugin("/p/hip", Sees("hip", {b}));
  const Registry registry = Discover();
  EXPECT_TRUE(Find(registry, "hip").used);
  EXPECT_FALSE(Find(registry, "vulkan").used);
}

TEST_F(RegistryTest, ChipsWithoutIdentityAreAllKept) {
  Plugin("/p/a", Sees("a", {Chip(TRINE_TIER_DGPU, "x", ""), Chip(TRINE_TIER_DGPU, "y", "")}));
  const Registry registry = Discover();
  ASSERT_EQ(registry.devices.size(), 2u);
  EXPECT_TRUE(registry.devices[0].used && registry.devices[1].used);
}

// The owner is unusable, so the other plugin gets the chip.
TEST_F(RegistryTest, UnusableDeviceOwnsNothing) {
  trine_device_info broken =
      Chip(TRINE_TIER_DGPU, "gfx1036", "0000:03:00.0", TRINE_DEVICE_UNUSABLE);
  std::strcpy(broken.reason, "no code object for gfx1036");
  Plugin("/p/hip", Sees("hip", {broken}));
  Plugin("/p/vulkan", Sees("vulkan", {Chip(TRINE_TIER_DGPU, "Navi", "0000:03:00.0")}));
  const Registry registry = Discover();
  EXPECT_EQ(Find(registry, "hip").reason, "no code object for gfx1036");
  EXPECT_TRUE(Find(registry, "vulkan").used);
}

TEST_F(RegistryTest, SoftwareDevicesAreNotPicked) {
  Plugin("/p/vulkan",
         Sees("vulkan", {Chip(TRINE_TIER_IGPU, "llvmpipe", "", TRINE_DEVICE_SOFTWARE)}));
  const Registry registry = Discover();
  EXPECT_FALSE(registry.devices[0].used);
  EXPECT_TRUE(registry.devices[0].on_request);
  EXPECT_THAT(registry.devices[0].reason, HasSubstr("software device"));
}

TEST_F(RegistryTest, FirstPluginOfANameServes) {
  Plugin("/p/one", Sees("cpu", {Chip(TRINE_TIER_CPU, "c", "")}));
  Plugin("/p/two", Sees("cpu", {Chip(TRINE_TIER_CPU, "c", "")}));
  const Registry registry = Discover();
  EXPECT_TRUE(registry.plugins[0].accepted);
  EXPECT_FALSE(registry.plugins[1].accepted);
  EXPECT_THAT(registry.plugins[1].reason, HasSubstr("shadowed"));
  EXPECT_EQ(registry.devices.size(), 1u);
}

TEST_F(RegistryTest, FailedProbeIsAFindingAndNothingMore) {
  ProbeResult crashed;
  crashed.status = absl::UnavailableError("the plugin or its driver crashed with SIGSEGV");
  Plugin("/p/bad", crashed);
  Plugin("/p/cpu", Sees("cpu", {Chip(TRINE_TIER_CPU, "c", "")}));
  const Registry registry = Discover();
  EXPECT_FALSE(registry.plugins[0].accepted);
  EXPECT_THAT(registry.plugins[0].reason, HasSubstr("SIGSEGV"));
  EXPECT_TRUE(registry.devices[0].used);
}

TEST_F(RegistryTest, AnotherNumericsVersionIsNotExact) {
  ProbeResult older = Sees("old", {Chip(TRINE_TIER_DGPU, "x", "")});
  older.numerics_version = TRINE_NUMERICS_VERSION + 1;
  Plugin("/p/old", older);
  const Registry registry = Discover();
  EXPECT_EQ(registry.devices[0].info.numerics, TRINE_NUMERICS_FAST);
  EXPECT_EQ(registry.devices[0].reason, "fast numerics only: not used without --numerics fast");
  EXPECT_TRUE(registry.devices[0].too_fast);
}

TEST_F(RegistryTest, ADeviceThatFailedTheSelfTestIsNotExact) {
  ProbeResult lies = Sees("lies", {Chip(TRINE_TIER_DGPU, "x", ""), Chip(TRINE_TIER_DGPU, "y", "")});
  lies.failed_tests[1] = "it fails the self-test (rms_norm, matmul)";
  Plugin("/p/lies", lies);
  Registry registry = Discover();
  EXPECT_TRUE(registry.devices[0].used);
  EXPECT_FALSE(registry.devices[1].used);
  EXPECT_EQ(registry.devices[1].info.numerics, TRINE_NUMERICS_FAST);
  EXPECT_EQ(registry.devices[1].reason,
            "the plugin calls it exact, but it fails the self-test (rms_norm, matmul): not used "
            "without --numerics fast");
  options_.numerics = TRINE_NUMERICS_FAST;
  registry = Discover();
  EXPECT_TRUE(registry.devices[1].used);
  EXPECT_THAT(registry.devices[1].reason, HasSubstr("with fast numerics: the plugin calls it"));
}

TEST_F(RegistryTest, FastDevicesAreUsedWhereTheUserAllowsIt) {
  ProbeResult fast = Sees("hip", {Chip(TRINE_TIER_DGPU, "x", "0000:01:00.0")});
  fast.devices[0].numerics = TRINE_NUMERICS_FAST;
  Plugin("/p/hip", fast);
  Plugin("/p/vulkan", Sees("vulkan", {Chip(TRINE_TIER_DGPU, "x", "0000:01:00.0")}));
  Registry registry = Discover();
  EXPECT_FALSE(registry.devices[0].used);
  EXPECT_FALSE(registry.devices[0].on_request);
  EXPECT_TRUE(registry.devices[0].too_fast);
  EXPECT_FALSE(registry.devices[1].too_fast);
  EXPECT_TRUE(registry.devices[1].used) << "the chip is free for the plugin that is exact";
  options_.numerics = TRINE_NUMERICS_FAST;
  registry = Discover();
  EXPECT_TRUE(registry.devices[0].used);
  EXPECT_EQ(registry.devices[0].reason, "serves the dgpu tier, with fast numerics");
  EXPECT_FALSE(registry.devices[0].too_fast);
  EXPECT_FALSE(registry.devices[1].used);
  EXPECT_FALSE(registry.devices[1].too_fast) << "it is not used for another reason";
}

TEST_F(RegistryTest, OptionsGoToThePluginsThatTheyAreFor) {
  Plugin("/p/libtrine-backend-cpu.so", Sees("cpu", {Chip(TRINE_TIER_CPU, "c", "")}));
  Plugin("/p/libtrine-backend-blas.so", Sees("blas", {Chip(TRINE_TIER_OTHER, "b", "")}));
  options_.plugin_options = {{"blas", "threads=4"}, {"blas", "spin=1"}};
  Registry registry = Discover();
  EXPECT_EQ(registry.plugins[0].options, "");
  EXPECT_EQ(registry.plugins[1].options, "threads=4;spin=1");
  EXPECT_EQ(registry.unused_options, "");
  options_.plugin_options = {{"blsa", "threads=4"}};
  EXPECT_EQ(Discover().unused_options,
            "the plugin option 'threads=4' has no effect: there is no plugin 'blsa'");
  probes_["/p/libtrine-backend-blas.so"].devices[0].numerics = TRINE_NUMERICS_FAST;
  options_.plugin_options = {{"blas", "threads=4"}};
  EXPECT_EQ(
      Discover().unused_options,
      "the plugin option 'threads=4' has no effect: /p/libtrine-backend-blas.so: fast numerics "
      "only: not used without --numerics fast");
  options_.numerics = TRINE_NUMERICS_FAST;
  EXPECT_EQ(Discover().unused_options, "");
  probes_["/p/libtrine-backend-blas.so"].status = absl::InvalidArgumentError("no option 'x'");
  options_.plugin_options = {{"blas", "x=1"}};
  EXPECT_EQ(Discover().unused_options,
            "the plugin option 'x=1' has no effect: /p/libtrine-backend-blas.so: no option 'x'");
}

TEST_F(RegistryTest, NonsenseInTheEnvironmentIsNoted) {
  setenv("TRINE_PLUGIN_PATH", "relative/path", 1);
  const std::string used = std::to_string(RegistryOptions().probe_timeout.count());
  for (const char* limit : {"soon", "0", "-5", ""}) {
    setenv("TRINE_PROBE_TIMEOUT_MS", limit, 1);
    const Registry registry = Discover();
    ASSERT_EQ(registry.notes.size(), 2u) << limit;
    EXPECT_THAT(registry.notes[0], HasSubstr(std::string("TRINE_PROBE_TIMEOUT_MS=") + limit + " "));
    EXPECT_THAT(registry.notes[0], HasSubstr(": " + used + " is used"));
  }
  unsetenv("TRINE_PROBE_TIMEOUT_MS");
  unsetenv("TRINE_PLUGIN_PATH");
}

TEST_F(RegistryTest, NamesThatNoPluginHasAreNoted) {
  Plugin("/p/vulkan", Sees("vulkan", {Chip(TRINE_TIER_DGPU, "Navi 31", "0000:03:00.0")}));
  setenv("TRINE_BACKEND_ORDER", "vlukan,vulkan", 1);
  const Registry registry = Discover();
  ASSERT_EQ(registry.notes.size(), 1u);
  EXPECT_EQ(registry.notes[0], "TRINE_BACKEND_ORDER: no plugin that answers is called 'vlukan'");
}

TEST_F(RegistryTest, AFolderWithoutAPluginIsNoted) {
  const std::string folder =
      ::testing::TempDir() + "registry_test.empty." + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  options_.search.explicit_paths = {folder};
  const Registry registry = Discover();
  ASSERT_EQ(registry.notes.size(), 1u);
  EXPECT_THAT(registry.notes[0], HasSubstr(folder));
  EXPECT_THAT(registry.notes[0], HasSubstr("has no plugin: no file libtrine-backend-*.so"));
  std::filesystem::remove_all(folder);
}

// Has a folder with the file of a plugin that declares TRINE_PLUGIN_HARDWARE.
class HardwareTest : public RegistryTest {
 protected:
  HardwareTest() {
    unsetenv("TRINE_FIXTURE_HARDWARE");
    folder_ = ::testing::TempDir() + "registry_test." + std::to_string(getpid());
    std::filesystem::create_directory(folder_);
    path_ = folder_ + "/libtrine-backend-hardware.so";
    std::filesystem::create_symlink(TRINE_HARDWARE_PLUGIN, path_);
    probes_[path_] = Sees("hardware", {Chip(TRINE_TIER_DGPU, "x", "")});
    options_.search.explicit_paths = {folder_};
    options_.hardware_alone = true;
  }
  ~HardwareTest() override {
    unsetenv("TRINE_FIXTURE_HARDWARE");
    std::filesystem::remove_all(folder_);
  }
  std::string folder_, path_;
};

TEST_F(HardwareTest, WithoutItThePluginIsNotProbed) {
  probes_.clear();  // any probe would throw
  const Registry registry = Discover();
  ASSERT_EQ(registry.plugins.size(), 1u);
  EXPECT_FALSE(registry.plugins[0].accepted);
  EXPECT_EQ(registry.plugins[0].reason,
            "not probed: there is no hardware for it (none of /dev/trine-fixture, "
            "$TRINE_FIXTURE_HARDWARE), and no device but the CPU was asked for");
  EXPECT_TRUE(registry.devices.empty());
}

TEST_F(HardwareTest, WhereOneOfItIsThereThePluginIsProbed) {
  setenv("TRINE_FIXTURE_HARDWARE", "", 1);
  EXPECT_TRUE(Discover().plugins[0].accepted);
}

TEST_F(HardwareTest, WhoAsksForSoftwareGetsIt) {
  options_.hardware_alone = false;
  EXPECT_TRUE(Discover().plugins[0].accepted);
}

TEST_F(HardwareTest, AFileThatIsNamedIsProbed) {
  options_.search.explicit_paths = {path_};
  EXPECT_TRUE(Discover().plugins[0].accepted);
}

}  // namespace
}  // namespace trine
