#include "backends/hip/found_devices.h"
#include "gtest/gtest.h"

namespace trine::hip {
namespace {

TEST(HipArch, HasTheUnitOfItsFamily) {
  EXPECT_EQ(MatrixUnitOf("sm_90"), MatrixUnit::kMma);
  EXPECT_EQ(MatrixUnitOf("gfx1100"), MatrixUnit::kWmma);
  EXPECT_EQ(MatrixUnitOf("gfx1151"), MatrixUnit::kWmma);
  EXPECT_EQ(MatrixUnitOf("gfx1201"), MatrixUnit::kWmmaGfx12);
  EXPECT_EQ(MatrixUnitOf("gfx90a"), MatrixUnit::kMfma);
  EXPECT_EQ(MatrixUnitOf("gfx942"), MatrixUnit::kMfmaGfx942);
  for (const char* arch : {"gfx906", "gfx1030", "gfx1036", "gfx1250", "host", ""}) {
    EXPECT_EQ(MatrixUnitOf(arch), MatrixUnit::kDot4) << arch;
  }
}

TEST(HipArch, TheEmulatorHasTheUnitsOfItsWaves) {
  for (const MatrixUnit unit : {MatrixUnit::kDot4, MatrixUnit::kMma}) {
    EXPECT_EQ(UsableUnit(unit, "host", 32), unit);
    EXPECT_EQ(UsableUnit(unit, "host", 64), unit);
  }
  for (const MatrixUnit unit : {MatrixUnit::kWmma, MatrixUnit::kWmmaGfx12}) {
    EXPECT_EQ(UsableUnit(unit, "host", 32), unit);
    EXPECT_EQ(UsableUnit(unit, "host", 64), MatrixUnit::kDot4);
  }
  for (const MatrixUnit unit : {MatrixUnit::kMfma, MatrixUnit::kMfmaGfx942}) {
    EXPECT_EQ(UsableUnit(unit, "host", 32), MatrixUnit::kDot4);
    EXPECT_EQ(UsableUnit(unit, "host", 64), unit);
  }
}

}  // namespace
}  // namespace trine::hip
