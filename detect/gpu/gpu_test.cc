#include "detect/gpu/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detect/testing/fake_root.h"
#include "detect/testing/scenarios.h"

namespace trine::detect {
namespace {

using ::testing::Contains;
using testing::FakePci;
using testing::FakeRoot;
using testing::FindScenario;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using testing::kGiB;

std::vector<GpuInfo> ReadGpus(const FakeRoot& fake, Notes* notes = nullptr) {
  Notes unused;
  return ReadGpus(FileRoot(fake.path()), notes ? notes : &unused);
}

std::vector<GpuInfo> ReadScenario(const char* name, Notes* notes = nullptr) {
  FakeRoot fake;
  FindScenario(name)->build(&fake);
  return ReadGpus(fake, notes);
}

TEST(PciAddress, Parses) {
  const auto address = ParsePciAddress("10000:e1:1f.7");
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(address->domain, 0x10000u);
  EXPECT_EQ(address->bus, 0xe1u);
  EXPECT_EQ(address->device, 0x1fu);
  EXPECT_EQ(address->function, 7u);
  for (const char* bad :
       {"", "03:00.0", "0000:03:00", "0000:03:20.0", "0000:03:00.8", "zzzz:zz:zz.z", "0000:0x:00.0",
        "000000000:03:00.0", "0000: 3:00.0", "0000:03:00.0 "}) {
    EXPECT_EQ(ParsePciAddress(bad), std::nullopt) << bad;
  }
}

TEST(Gpu, AmdCardInFull) {
  const auto gpus = ReadScenario("desktop-amd");
  ASSERT_THAT(gpus, SizeIs(1));
  const GpuInfo& gpu = gpus[0];
  EXPECT_EQ(gpu.pci_address, "0000:03:00.0");
  EXPECT_EQ(gpu.vendor_id, 0x1002u);
  EXPECT_EQ(gpu.device_id, 0x744cu);
  EXPECT_EQ(gpu.subsystem_vendor_id, 0x1043u);
  EXPECT_EQ(gpu.vendor, "AMD");
  EXPECT_EQ(gpu.family, "RDNA3");
  EXPECT_EQ(gpu.name, "Navi 31");
  EXPECT_EQ(gpu.kind, GpuKind::kDiscrete);
  EXPECT_TRUE(gpu.counted);
  EXPECT_EQ(gpu.driver, "amdgpu");
  EXPECT_EQ(gpu.gfx_target, "gfx1100");
  EXPECT_EQ(gpu.vram_bytes, 24 * kGiB);
  EXPECT_EQ(gpu.gtt_bytes, 16 * kGiB);
  EXPECT_EQ(gpu.bar_bytes, 32 * kGiB);
  EXPECT_EQ(gpu.render_node, "/dev/dri/renderD128");
  EXPECT_EQ(gpu.numa_node, 0);
}

TEST(Gpu, ApuAndCardHaveTheirOwnTargets) {
  const auto gpus = ReadScenario("apu-and-dgpu");
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].kind, GpuKind::kDiscrete);
  EXPECT_EQ(gpus[0].gfx_target, "gfx1100");
  EXPECT_EQ(gpus[1].kind, GpuKind::kIntegrated);
  EXPECT_EQ(gpus[1].gfx_target, "gfx1035");
  EXPECT_EQ(gpus[1].numa_node, std::nullopt);
}

TEST(Gpu, NvidiaNameComesFromItsDriver) {
  const auto gpus = ReadScenario("desktop-nvidia");
  ASSERT_THAT(gpus, SizeIs(1));
  EXPECT_EQ(gpus[0].name, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(gpus[0].family, "Ada");
  EXPECT_EQ(gpus[0].vram_bytes, std::nullopt);
}

TEST(Gpu, AcceleratorClass) {
  const auto gpus = ReadScenario("cdna3-server");
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].vendor, "ASPEED");
  EXPECT_FALSE(gpus[0].counted);
  EXPECT_EQ(gpus[1].family, "CDNA3");
  EXPECT_EQ(gpus[1].gfx_target, "gfx942");
  EXPECT_TRUE(gpus[1].counted);
}

TEST(Gpu, AcceleratorsThatAreNoGpusAreLeftOut) {
  FakeRoot fake;
  fake.Pci({.address = "0000:00:0b.0",
            .vendor = 0x8086,
            .device = 0x7d1d,
            .pci_class = 0x120000,
            .driver = "intel_vpu"});
  EXPECT_THAT(ReadGpus(fake), IsEmpty());
}

TEST(Gpu, SetAsideForAVirtualMachine) {
  Notes notes;
  const auto gpus = ReadScenario("vfio-dgpu", &notes);
  ASSERT_THAT(gpus, SizeIs(1));
  EXPECT_EQ(gpus[0].driver, "vfio-pci");
  EXPECT_FALSE(gpus[0].counted);
  EXPECT_THAT(notes, Contains(HasSubstr("vfio-pci")));
}

TEST(Gpu, Unbound) {
  Notes notes;
  const auto gpus = ReadScenario("unbound-dgpu", &notes);
  ASSERT_THAT(gpus, SizeIs(1));
  EXPECT_FALSE(gpus[0].counted);
  EXPECT_THAT(notes, Contains(HasSubstr("no driver bound")));
}

TEST(Gpu, UnknownAmdIdIsPlacedByItsBridges) {
  FakeRoot fake;
  FakePci card{.address = "0000:03:00.0", .vendor = 0x1002, .device = 0xfff0, .driver = "amdgpu"};
  card.bridges = {{"0000:00:01.1", 0x14ab}, {"0000:01:00.0", 0x1478}, {"0000:02:00.0", 0x1479}};
  card.vram = kGiB;
  fake.Pci(card);
  Notes notes;
  const auto gpus = ReadGpus(fake, &notes);
  ASSERT_THAT(gpus, SizeIs(1));
  EXPECT_EQ(gpus[0].kind, GpuKind::kDiscrete);
  EXPECT_THAT(notes, Contains(HasSubstr("unknown AMD id")));
}

TEST(Gpu, VirtualFunction) {
  FakeRoot fake;
  fake.Pci({.address = "0000:00:02.1", .vendor = 0x8086, .device = 0xa780, .driver = "i915"});
  fake.Link("/sys/devices/pci0000:00/0000:00:02.1/physfn", "../0000:00:02.0");
  ASSERT_THAT(ReadGpus(fake), SizeIs(1));
  EXPECT_TRUE(ReadGpus(fake)[0].is_virtual_function);
}

TEST(Gpu, ArmDevfreq) {
  const auto gpus = ReadScenario("arm-mali");
  ASSERT_THAT(gpus, SizeIs(1)) << "the memory controller scales too, and is no GPU";
  EXPECT_EQ(gpus[0].vendor, "Arm");
  EXPECT_EQ(gpus[0].family, "Mali (Valhall)");
  EXPECT_EQ(gpus[0].driver, "panthor");
  EXPECT_EQ(gpus[0].kind, GpuKind::kIntegrated);
  EXPECT_EQ(gpus[0].pci_address, "");
  EXPECT_TRUE(gpus[0].counted);
}

TEST(Gpu, ArmVariants) {
  FakeRoot fake;
  fake.Devfreq("17000000.gpu", std::string("nvidia,ga10b\0", 13), "gk20a")
      .Devfreq("1c40000.gpu", std::string("arm,mali-400\0", 13), "lima")
      .Devfreq("3d00000.gpu", std::string("qcom,adreno-660.1\0qcom,adreno\0", 30), "msm")
      .Devfreq("5900.mali", std::string("acme,thing\0", 11), "");
  const auto gpus = ReadGpus(fake);
  ASSERT_THAT(gpus, SizeIs(4));
  EXPECT_EQ(gpus[0].family, "Ampere (Orin)");
  EXPECT_TRUE(gpus[0].counted);
  EXPECT_EQ(gpus[1].family, "Mali (Utgard)");
  EXPECT_FALSE(gpus[1].counted);
  EXPECT_EQ(gpus[2].family, "Adreno");
  EXPECT_TRUE(gpus[2].counted);
  EXPECT_EQ(gpus[3].name, "5900.mali");
  EXPECT_FALSE(gpus[3].counted);
}

TEST(Kfd, TargetNames) {
  EXPECT_EQ(GfxTargetName(110000), "gfx1100");
  EXPECT_EQ(GfxTargetName(90010), "gfx90a");
  EXPECT_EQ(GfxTargetName(90402), "gfx942");
  EXPECT_EQ(GfxTargetName(120001), "gfx1201");
  EXPECT_EQ(GfxTargetName(100306), "gfx1036");
  EXPECT_EQ(GfxTargetName(0), "");
  EXPECT_EQ(GfxTargetName(99999999999), "");
}

TEST(Kfd, MatchesDomainToo) {
  FakeRoot fake;
  fake.Kfd(1, 1, 0x0300, 90402);
  const auto nodes = ReadKfdNodes(FileRoot(fake.path()));
  EXPECT_EQ(GfxTargetAt(nodes, {0, 3, 0, 0}), "");
  EXPECT_EQ(GfxTargetAt(nodes, {1, 3, 0, 0}), "gfx942");
}

}  // namespace
}  // namespace trine::detect
