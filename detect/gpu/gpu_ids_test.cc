#include "detect/gpu/gpu_ids.h"

#include <gtest/gtest.h>

namespace trine::detect {
namespace {

TEST(GpuIds, TablesAscendWithoutOverlap) {
  for (const uint32_t vendor : {kVendorAmd, kVendorIntel, kVendorNvidia}) {
    const auto table = GpuIdTable(vendor);
    ASSERT_FALSE(table.empty());
    for (size_t i = 0; i < table.size(); ++i) {
      EXPECT_LE(table[i].first, table[i].last) << std::hex << table[i].first;
      if (i > 0) {
        EXPECT_LT(table[i - 1].last, table[i].first) << std::hex << table[i].first;
      }
    }
  }
}

struct Known {
  uint32_t vendor, device;
  GpuKind kind;
  const char* family;
};

TEST(GpuIds, KnownProducts) {
  constexpr GpuKind kI = GpuKind::kIntegrated, kD = GpuKind::kDiscrete;
  const Known cases[] = {
      {kVendorIntel, 0x9a49, kI, "Xe-LP (Tiger Lake)"},
      {kVendorIntel, 0x46a6, kI, "Xe-LP (Alder Lake)"},
      {kVendorIntel, 0xa780, kI, "Xe-LP (Raptor Lake)"},
      {kVendorIntel, 0x7d55, kI, "Xe-LPG (Meteor Lake)"},
      {kVendorIntel, 0x7d51, kI, "Xe-LPG+ (Arrow Lake-H)"},
      {kVendorIntel, 0x64a0, kI, "Xe2 (Lunar Lake)"},
      {kVendorIntel, 0xb080, kI, "Xe3 (Panther Lake)"},
      {kVendorIntel, 0x5912, kI, "Gen9 (Kaby Lake)"},
      {kVendorIntel, 0x4905, kD, "Xe-LP (DG1)"},
      {kVendorIntel, 0x56a0, kD, "Arc Alchemist (DG2)"},
      {kVendorIntel, 0x56c0, kD, "Arc Alchemist (ATS-M)"},
      {kVendorIntel, 0xe20b, kD, "Arc Battlemage (BMG-G21)"},
      {kVendorIntel, 0x0bd5, kD, "Xe-HPC (Ponte Vecchio)"},
      {kVendorAmd, 0x15dd, kI, "Vega"},
      {kVendorAmd, 0x1681, kI, "RDNA2"},
      {kVendorAmd, 0x164e, kI, "RDNA2"},
      {kVendorAmd, 0x15bf, kI, "RDNA3"},
      {kVendorAmd, 0x150e, kI, "RDNA3.5"},
      {kVendorAmd, 0x1586, kI, "RDNA3.5"},
      {kVendorAmd, 0x731f, kD, "RDNA1"},
      {kVendorAmd, 0x73bf, kD, "RDNA2"},
      {kVendorAmd, 0x73df, kD, "RDNA2"},
      {kVendorAmd, 0x73f0, kD, "RDNA3"},
      {kVendorAmd, 0x73ff, kD, "RDNA2"},
      {kVendorAmd, 0x743f, kD, "RDNA2"},
      {kVendorAmd, 0x744c, kD, "RDNA3"},
      {kVendorAmd, 0x747e, kD, "RDNA3"},
      {kVendorAmd, 0x7480, kD, "RDNA3"},
      {kVendorAmd, 0x7550, kD, "RDNA4"},
      {kVendorAmd, 0x7590, kD, "RDNA4"},
      {kVendorAmd, 0x738c, kD, "CDNA1"},
      {kVendorAmd, 0x740f, kD, "CDNA2"},
      {kVendorAmd, 0x74a1, kD, "CDNA3"},
      {kVendorAmd, 0x74a0, kI, "CDNA3"},
      {kVendorNvidia, 0x1eb8, kD, "Turing"},
      {kVendorNvidia, 0x20b2, kD, "Ampere"},
      {kVendorNvidia, 0x2204, kD, "Ampere"},
      {kVendorNvidia, 0x2330, kD, "Hopper"},
      {kVendorNvidia, 0x2335, kD, "Hopper"},
      {kVendorNvidia, 0x2484, kD, "Ampere"},
      {kVendorNvidia, 0x2684, kD, "Ada"},
      {kVendorNvidia, 0x2901, kD, "Blackwell"},
      {kVendorNvidia, 0x2b85, kD, "Blackwell"},
      {kVendorNvidia, 0x2e12, kI, "Blackwell"},
  };
  for (const Known& known : cases) {
    const GpuIdRange* range = FindGpuId(known.vendor, known.device);
    ASSERT_NE(range, nullptr) << std::hex << known.vendor << ":" << known.device;
    EXPECT_STREQ(range->family, known.family) << std::hex << known.device;
    EXPECT_EQ(range->kind, known.kind) << std::hex << known.device;
  }
}

TEST(GpuIds, UnknownIsNull) {
  EXPECT_EQ(FindGpuId(kVendorAmd, 0x0000), nullptr);
  EXPECT_EQ(FindGpuId(kVendorAmd, 0x743f + 1), nullptr);
  EXPECT_EQ(FindGpuId(kVendorAmd, 0xffff), nullptr);
  EXPECT_EQ(FindGpuId(0x1a03, 0x2000), nullptr);
  EXPECT_EQ(FindGpuId(kVendorNvidia, 0x2300 - 1), nullptr);
}

TEST(GpuIds, Vendors) {
  EXPECT_EQ(GpuVendorName(kVendorNvidia), "NVIDIA");
  EXPECT_EQ(GpuVendorName(0xabcd), "vendor 0xabcd");
  EXPECT_TRUE(IsDisplayOnlyVendor(0x1a03));
  EXPECT_FALSE(IsDisplayOnlyVendor(kVendorAmd));
}

}  // namespace
}  // namespace trine::detect
