#include <gtest/gtest.h>

#include "detect/gpu/gpu_ids.h"
#include "detect/gpu/gpu_pci.h"
#include "detect/testing/fake_root.h"

namespace trine::detect {
namespace {

using testing::kGiB;

GpuInfo Gpu(uint32_t vendor, uint32_t device) {
  GpuInfo gpu;
  gpu.vendor_id = vendor;
  gpu.device_id = device;
  gpu.pci_class = 0x030000;
  return gpu;
}

GpuKind KindOf(GpuInfo gpu, const PciPlace& place) {
  ClassifyKind(place, &gpu);
  EXPECT_FALSE(gpu.kind_reason.empty());
  return gpu.kind;
}

TEST(ClassifyKind, KnownIdWinsOverPlace) {
  EXPECT_EQ(KindOf(Gpu(kVendorIntel, 0x9a49), {{0, 5, 0, 0}, {}}), GpuKind::kIntegrated);
  EXPECT_EQ(KindOf(Gpu(kVendorIntel, 0x56a0), {{0, 0, 2, 0}, {}}), GpuKind::kDiscrete);
}

TEST(ClassifyKind, UnknownIntelByPlace) {
  EXPECT_EQ(KindOf(Gpu(kVendorIntel, 0xfffe), {{0, 0, 2, 0}, {}}), GpuKind::kIntegrated);
  EXPECT_EQ(KindOf(Gpu(kVendorIntel, 0xfffe), {{0, 3, 0, 0}, {}}), GpuKind::kDiscrete);
}

TEST(ClassifyKind, UnknownAmd) {
  const PciPlace root_port{{0, 0xd, 0, 0}, {{0x1022, 0x14b9}}};
  const PciPlace card{{0, 3, 0, 0}, {{kVendorAmd, 0x1479}, {kVendorAmd, 0x1478}, {0x1022, 0x1483}}};
  GpuInfo gpu = Gpu(kVendorAmd, 0xfffe);
  EXPECT_EQ(KindOf(gpu, root_port), GpuKind::kDiscrete) << "nothing marks it as integrated";
  gpu.vram_bytes = kGiB / 2;
  EXPECT_EQ(KindOf(gpu, root_port), GpuKind::kIntegrated);
  EXPECT_EQ(KindOf(gpu, card), GpuKind::kDiscrete);
  gpu.vram_bytes = 16 * kGiB;
  EXPECT_EQ(KindOf(gpu, root_port), GpuKind::kDiscrete);
  gpu.vram_bytes = kGiB / 2;
  gpu.pci_class = 0x120000;
  EXPECT_EQ(KindOf(gpu, root_port), GpuKind::kDiscrete);
}

TEST(ClassifyKind, OtherVendors) {
  EXPECT_EQ(KindOf(Gpu(kVendorNvidia, 0xfffe), {}), GpuKind::kDiscrete);
  for (const uint32_t vendor :
       {0x1a03u, 0x102bu, 0x1af4u, 0x1b36u, 0x15adu, 0x1013u, 0x1234u, 0xabcdu}) {
    EXPECT_EQ(KindOf(Gpu(vendor, 1), {}), GpuKind::kOther) << std::hex << vendor;
  }
}

TEST(ClassifyCounted, ByDriver) {
  const auto counted = [](uint32_t vendor, uint32_t device, const char* driver) {
    GpuInfo gpu = Gpu(vendor, device);
    gpu.driver = driver;
    ClassifyKind({}, &gpu);
    ClassifyCounted(&gpu);
    EXPECT_FALSE(gpu.counted_reason.empty());
    return gpu.counted;
  };
  EXPECT_TRUE(counted(kVendorAmd, 0x744c, "amdgpu"));
  EXPECT_TRUE(counted(kVendorNvidia, 0x2684, "nouveau"));
  EXPECT_TRUE(counted(kVendorIntel, 0xe20b, "xe"));
  EXPECT_FALSE(counted(kVendorAmd, 0x744c, ""));
  EXPECT_FALSE(counted(kVendorAmd, 0x744c, "vfio-pci"));
  EXPECT_FALSE(counted(kVendorAmd, 0x9832, "radeon"));
  EXPECT_FALSE(counted(kVendorIntel, 0x0102, "i915")) << "Sandy Bridge has no Vulkan";
  EXPECT_FALSE(counted(0x1a03, 0x2000, "ast"));
}

}  // namespace
}  // namespace trine::detect
