#include "runtime/batch/pass_groups.h"

#include "gtest/gtest.h"

namespace trine {
namespace {

using std::chrono::milliseconds;

void Times(PassGroups* groups, milliseconds stage, milliseconds host) {
  for (int i = 0; i < 100; ++i) {
    groups->StageTook(stage);
    groups->HostTook(host);
  }
}

TEST(PassGroupsTest, AsManyAsStagesUntilTheHostIsSlow) {
  PassGroups groups(3);
  EXPECT_EQ(groups.count(), 3);
  EXPECT_EQ(groups.most(), 4);
  Times(&groups, milliseconds(10), milliseconds(1));
  EXPECT_EQ(groups.count(), 3);
  Times(&groups, milliseconds(10), milliseconds(9));
  EXPECT_EQ(groups.count(), 4);
  Times(&groups, milliseconds(10), milliseconds(6));  // in between: as it was
  EXPECT_EQ(groups.count(), 4);
  Times(&groups, milliseconds(10), milliseconds(2));
  EXPECT_EQ(groups.count(), 3);
  Times(&groups, milliseconds(10), milliseconds(6));
  EXPECT_EQ(groups.count(), 3);
}

TEST(PassGroupsTest, OnePauseIsForgotten) {
  PassGroups groups(2);
  Times(&groups, milliseconds(10), milliseconds(1));
  groups.HostTook(milliseconds(60000));
  EXPECT_EQ(groups.count(), 2);
}

TEST(PassGroupsTest, WaitsForOthersWhereTheyAreSoonBack) {
  PassGroups groups(3);
  EXPECT_EQ(groups.patience().count(), 0);
  Times(&groups, milliseconds(100), milliseconds(2));
  EXPECT_EQ(groups.patience(), milliseconds(6));
  Times(&groups, milliseconds(100), milliseconds(20));
  EXPECT_EQ(groups.patience(), milliseconds(25));
  Times(&groups, milliseconds(100), milliseconds(40));
  EXPECT_EQ(groups.patience().count(), 0);
}

TEST(PassGroupsTest, OneStageWaitsWhereItIsAskedTo) {
  PassGroups groups(1, /*patient_alone=*/true);
  Times(&groups, milliseconds(100), milliseconds(2));
  EXPECT_EQ(groups.patience(), milliseconds(6));
  EXPECT_EQ(groups.count(), 1);
  EXPECT_EQ(groups.most(), 1);
}

TEST(PassGroupsTest, OneStageIsOneGroup) {
  PassGroups groups(1);
  Times(&groups, milliseconds(9), milliseconds(1));
  EXPECT_EQ(groups.patience().count(), 0);
  Times(&groups, milliseconds(1), milliseconds(9));
  EXPECT_EQ(groups.count(), 1);
  EXPECT_EQ(groups.most(), 1);
}

}  // namespace
}  // namespace trine
