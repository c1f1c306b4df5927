#include "dispatch/devices/inventory.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;

class InventoryTest : public ::testing::Test {
 protected:
  InventoryTest() {
    machine_.memory.total_bytes = 32 * kGiB;
    machine_.memory.available_bytes = 20 * kGiB;
  }
  size_t Plugin(const std::string& name) {
    PluginFinding plugin;
    plugin.path = "/p/libtrine-backend-" + name + ".so";
    plugin.accepted = true;
    plugin.probe.name = name;
    registry_.plugins.push_back(plugin);
    return registry_.plugins.size() - 1;
  }
  void Device(size_t plugin, uint32_t tier, const char* name, const char* pci, const char* pool,
              uint64_t bytes, uint32_t flags = 0) {
    DeviceFinding found;
    found.plugin = plugin;
    for (const DeviceFinding& other : registry_.devices) found.index += other.plugin == plugin;
    found.info.tier = tier;
    found.info.flags = flags;
    found.info.memory_total = found.info.memory_free = bytes;
    std::strcpy(found.info.name, name);
    std::strcpy(found.info.pci_id, pci);
    std::strcpy(found.info.memory_pool, pool);
    found.used = true;
    found.reason = "serves";
    registry_.devices.push_back(found);
  }
  void Gpu(const char* pci, detect::GpuKind kind, bool counted, const char* why) {
    detect::GpuInfo gpu;
    gpu.pci_address = pci;
    gpu.vendor = "AMD";
    gpu.family = "RDNA3";
    gpu.kind = kind;
    gpu.counted = counted;
    gpu.counted_reason = why;
    gpu.driver = "amdgpu";
    machine_.gpus.push_back(gpu);
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const InventoryDevice& d : Take().devices) names.push_back(d.tier_name);
    return names;
  }
  Inventory Take() { return TakeInventory(machine_, registry_); }

  detect::Machine machine_;
  Registry registry_;
};

TEST_F(InventoryTest, ListsDevicesThatAreOnlyTooFast) {
  Device(Plugin("cpu"), TRINE_TIER_CPU, "processor", "", "system", 32 * kGiB);
  const size_t blas = Plugin("blas");
  for (const bool too_fast : {true, false}) {
    Device(blas, TRINE_TIER_OTHER, "BLAS", "", "system", 32 * kGiB);
    registry_.devices.back().used = false;
    registry_.devices.back().too_fast = too_fast;
    registry_.devices.back().reason = too_fast ? "fast" : "broken";
  }
  Gpu("0000:01:00.0", detect::GpuKind::kDiscrete, true, "");
  const std::vector<InventoryDevice> found = DevicesTooFast(Take());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].backend_name, "blas0");
  EXPECT_EQ(found[0].reason, "fast");
}

TEST_F(InventoryTest, NamesDevicesByTier) {
  const size_t hip = Plugin("hip"), cpu = Plugin("cpu"), vulkan = Plugin("vulkan");
  Device(hip, TRINE_TIER_DGPU, "big", "0000:03:00.0", "hip0", 16 * kGiB);
  Device(hip, TRINE_TIER_DGPU, "bigger", "0000:0a:00.0", "hip1", 24 * kGiB);
  Device(cpu, TRINE_TIER_CPU, "processor", "", "system", 32 * kGiB);
  Device(vulkan, TRINE_TIER_IGPU, "small", "0000:c1:00.0", "system", 32 * kGiB);
  const Inventory inventory = Take();
  std::vector<std::string> names, backends;
  for (const auto& device : inventory.devices) {
    names.push_back(device.tier_name);
    backends.push_back(device.backend_name);
  }
  EXPECT_THAT(names, ElementsAre("cpu", "igpu0", "dgpu0", "dgpu1"));
  EXPECT_THAT(backends, ElementsAre("CPU", "Vulkan0", "ROCm0", "ROCm1"));
  EXPECT_EQ(inventory.usable_tier, detect::ComputeTier::kCpuIgpuDgpu);
  EXPECT_TRUE(inventory.problems.empty());
}

TEST_F(InventoryTest, DevicesOutsideOfTheTiersHaveTheirPluginsNames) {
  Device(Plugin("cpu"), TRINE_TIER_CPU, "processor", "", "system", kGiB);
  const size_t blas = Plugin("blas"), numbered = Plugin("npu-2"), misleading = Plugin("igpu");
  Device(blas, TRINE_TIER_OTHER, "library", "", "system", kGiB);
  Device(blas, TRINE_TIER_OTHER, "library", "", "system", kGiB);
  Device(numbered, TRINE_TIER_OTHER, "chip", "", "npu", kGiB);
  Device(misleading, TRINE_TIER_OTHER, "chip", "", "npu", kGiB);
  EXPECT_THAT(Names(), ElementsAre("cpu", "blas0", "blas1", "npu-2-0", "other0"));
  // The number is the plugin's, whichever of its devices are used.
  registry_.devices[1].used = false;
  registry_.devices[1].reason = "unusable";
  EXPECT_THAT(Names(), ElementsAre("cpu", "blas1", "npu-2-0", "other0", ""));
  const Inventory inventory = Take();
  EXPECT_EQ((*FindDevice(inventory, "blas1"))->tier_name, "blas1");
  EXPECT_EQ(FindDevice(inventory, "blas0").status().message(),
            "device 'blas0' is not used: unusable");
  EXPECT_EQ(FindDevice(inventory, "tpu").status().message(),
            "no device is called 'tpu'; there are: cpu (CPU), blas1, npu-2-0, other0 (igpu0)");
}

// An iGPU that reports all of RAM as its own must not make the machine twice as large.
TEST_F(InventoryTest, CpuAndIgpuShareOnePool) {
  const size_t cpu = Plugin("cpu"), vulkan = Plugin("vulkan"), hip = Plugin("hip");
  Device(cpu, TRINE_TIER_CPU, "processor", "", "system", 32 * kGiB);
  Device(vulkan, TRINE_TIER_IGPU, "small", "0000:c1:00.0", "", 32 * kGiB,
         TRINE_DEVICE_UNIFIED_MEMORY);
  Device(hip, TRINE_TIER_DGPU, "big", "0000:03:00.0", "", 16 * kGiB);
  const Inventory inventory = Take();
  ASSERT_EQ(inventory.pools.size(), 2u);
  EXPECT_EQ(inventory.pools[0].name, "system");
  EXPECT_EQ(inventory.pools[0].total_bytes, 32 * kGiB);
  EXPECT_EQ(inventory.pools[0].available_bytes, 20 * kGiB);
  EXPECT_THAT(inventory.pools[0].devices, ElementsAre("cpu", "igpu0"));
  EXPECT_EQ(inventory.pools[1].total_bytes, 16 * kGiB);
  EXPECT_THAT(inventory.pools[1].devices, ElementsAre("dgpu0"));
}

TEST_F(InventoryTest, GpuWithoutPluginSaysWhatIsMissing) {
  Device(Plugin("cpu"), TRINE_TIER_CPU, "processor", "", "system", kGiB);
  Gpu("0000:03:00.0", detect::GpuKind::kDiscrete, true, "amdgpu drives it");
  Gpu("0000:c1:00.0", detect::GpuKind::kIntegrated, true, "amdgpu drives it");
  Gpu("0000:02:00.0", detect::GpuKind::kOther, false, "a server's management chip");
  const Inventory inventory = Take();
  ASSERT_EQ(inventory.devices.size(), 4u);
  EXPECT_THAT(inventory.devices[1].reason, HasSubstr("it would be vulkan"));
  EXPECT_THAT(inventory.devices[2].reason, HasSubstr("it would be hip"));
  EXPECT_EQ(inventory.devices[3].reason, "a server's management chip");
  for (size_t i = 1; i < 4; ++i) EXPECT_FALSE(inventory.devices[i].used);
  EXPECT_EQ(inventory.usable_tier, detect::ComputeTier::kCpuOnly);
}

TEST_F(InventoryTest, RejectedPluginExplainsItsGpu) {
  Device(Plugin("cpu"), TRINE_TIER_CPU, "processor", "", "system", kGiB);
  const size_t hip = Plugin("hip");
  registry_.plugins[hip].accepted = false;
  registry_.plugins[hip].reason = "missing library: it needs libamdhip64.so.5";
  Gpu("0000:03:00.0", detect::GpuKind::kDiscrete, true, "");
  EXPECT_THAT(Take().devices[1].reason, HasSubstr("libamdhip64.so.5"));
}

TEST_F(InventoryTest, PluginDeviceAndMachineGpuAreOneChip) {
  const size_t hip = Plugin("hip");
  Device(Plugin("cpu"), TRINE_TIER_CPU, "processor", "", "system", kGiB);
  Device(hip, TRINE_TIER_DGPU, "gfx1100", "0000:03:00.0", "hip0", kGiB);
  Gpu("0000:03:00.0", detect::GpuKind::kDiscrete, true, "");
  const Inventory inventory = Take();
  ASSERT_EQ(inventory.devices.size(), 2u);
  EXPECT_EQ(inventory.devices[1].machine_gpu, 0u);
}

TEST_F(InventoryTest, MissingCpuBackendSaysWhereItWasLookedFor) {
  registry_.folders.push_back({"/opt/trine/plugins", "installed", false, ""});
  const Inventory inventory = Take();
  ASSERT_EQ(inventory.problems.size(), 1u);
  EXPECT_THAT(inventory.problems[0], HasSubstr("/opt/trine/plugins (absent)"));
}

}  // namespace
}  // namespace trine
