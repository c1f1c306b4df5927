#include "runtime/placement/team_choice.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/openmp_team.h"

namespace trine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TeamChoiceTest : public testing::Test {
 protected:
  void TearDown() override { unsetenv("TRINE_TEAM"); }

  static absl::StatusOr<TeamKind> Resolved(TeamKind kind, bool use_environment = true) {
    TeamRequest request;
    request.kind = kind;
    const auto resolved = ResolveTeam(request, 0, use_environment);
    if (!resolved.ok()) return resolved.status();
    return resolved->kind;
  }
  static HostThreads Lent(uint32_t workers) {
    HostThreads threads;
    threads.workers = workers;
    threads.parallel_run = [](auto work, void* arg, uint32_t) {
      work(arg, 0);
      return 0;
    };
    return threads;
  }
};

TEST_F(TeamChoiceTest, TheVariableCountsWhereNothingElseIsSaid) {
  EXPECT_EQ(*Resolved(TeamKind::kDefault), TeamKind::kOwn);
  setenv("TRINE_TEAM", "", 1);
  EXPECT_EQ(*Resolved(TeamKind::kDefault), TeamKind::kOwn);
  setenv("TRINE_TEAM", "own", 1);
  EXPECT_EQ(*Resolved(TeamKind::kDefault), TeamKind::kOwn);
  setenv("TRINE_TEAM", "openmp", 1);
  EXPECT_EQ(*Resolved(TeamKind::kOwn), TeamKind::kOwn);
  EXPECT_EQ(*Resolved(TeamKind::kDefault, /*use_environment=*/false), TeamKind::kOwn);
  const auto openmp = Resolved(TeamKind::kDefault);
  if (OpenMpTeam::IsBuilt()) {
    EXPECT_EQ(*openmp, TeamKind::kOpenMp);
  } else {
    EXPECT_TRUE(absl::IsUnimplemented(openmp.status())) << openmp.status();
  }
}

TEST_F(TeamChoiceTest, AnUnknownNameIsNamedWithThoseThereAre) {
  setenv("TRINE_TEAM", "theirs", 1);
  const absl::Status status = Resolved(TeamKind::kDefault).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("TRINE_TEAM: 'theirs' is no team"), HasSubstr("own or openmp")));
}

TEST_F(TeamChoiceTest, LentThreadsAreAsManyAsTheProgramSays) {
  TeamRequest request;
  request.host = Lent(3);
  setenv("TRINE_TEAM", "nonsense", 1);
  EXPECT_TRUE(ResolveTeam(request, 0, true).ok()) << "the variable does not count";
  EXPECT_TRUE(ResolveTeam(request, 3, true).ok());
  EXPECT_THAT(ResolveTeam(request, 2, true).status().message(),
              HasSubstr("lends 3 threads, and asks for 2"));
  request.host->parallel_run = nullptr;
  EXPECT_TRUE(absl::IsInvalidArgument(ResolveTeam(request, 0, true).status()));
  request.host = Lent(0);
  EXPECT_TRUE(absl::IsInvalidArgument(ResolveTeam(request, 0, true).status()));
}

TEST_F(TeamChoiceTest, MakesTheTeamThatIsAskedFor) {
  detect::CpuInfo cpu;
  cpu.usable_cpus = {0, 1};
  TeamRequest request;
  request.kind = TeamKind::kOwn;
  auto team = MakeTeam(request, 3, cpu, nullptr);
  ASSERT_TRUE(team.ok()) << team.status();
  EXPECT_STREQ((*team)->name(), "own");
  EXPECT_EQ((*team)->workers(), 3u);
  request.host = Lent(1);
  team = MakeTeam(request, 0, cpu, nullptr);
  ASSERT_TRUE(team.ok()) << team.status();
  EXPECT_STREQ((*team)->name(), "host");
  EXPECT_EQ((*team)->workers(), 1u);
  if (!OpenMpTeam::IsBuilt()) return;
  request = {TeamKind::kOpenMp, {}};
  team = MakeTeam(request, 2, cpu, nullptr);
  ASSERT_TRUE(team.ok()) << team.status();
  EXPECT_STREQ((*team)->name(), "openmp");
  EXPECT_EQ((*team)->workers(), 2u);
}

}  // namespace
}  // namespace trine
