#include "runtime/engine/readmission.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Readmission::Time kBegin{seconds(1000)};

TEST(ReadmissionTest, WaitsTwiceAsLongAfterEachFailure) {
  Readmission r{ReadmissionOptions{}};
  EXPECT_FALSE(r.Next().has_value());
  Readmission::Time now = kBegin;
  r.Lost("dgpu0", now);
  for (const int wait : {5, 10, 20, 40, 80, 160, 300, 300}) {
    EXPECT_EQ(r.Next(), now + seconds(wait));
    EXPECT_THAT(r.Due(now + seconds(wait) - milliseconds(1)), IsEmpty());
    now += seconds(wait);
    EXPECT_THAT(r.Due(now), ElementsAre("dgpu0"));
    r.Failed("dgpu0", now);
  }
}

TEST(ReadmissionTest, ADeviceThatIsLostAgainSoonWaitsLonger) {
  Readmission r{ReadmissionOptions{}};
  r.Lost("dgpu0", kBegin);
  r.Admitted("dgpu0", kBegin + seconds(5));
  EXPECT_FALSE(r.Next().has_value());
  EXPECT_THAT(r.Due(kBegin + minutes(60)), IsEmpty());
  r.Lost("dgpu0", kBegin + seconds(6));
  EXPECT_EQ(r.Next(), kBegin + seconds(16));
  r.Admitted("dgpu0", kBegin + seconds(16));
  r.Lost("dgpu0", kBegin + minutes(10));  // it has worked for a long time
  EXPECT_EQ(r.Next(), kBegin + minutes(10) + seconds(5));
}

TEST(ReadmissionTest, EachDeviceHasItsOwnTime) {
  Readmission r{ReadmissionOptions{}};
  r.Lost("igpu0", kBegin);
  r.Lost("dgpu0", kBegin + seconds(2));
  EXPECT_EQ(r.Next(), kBegin + seconds(5));
  EXPECT_THAT(r.Due(kBegin + seconds(5)), ElementsAre("igpu0"));
  EXPECT_THAT(r.Due(kBegin + seconds(7)), ElementsAre("dgpu0", "igpu0"));
}

TEST(ReadmissionTest, NeverByItselfWhereNobodyWantsIt) {
  ReadmissionOptions options;
  options.automatic = false;
  Readmission r{options};
  r.Lost("dgpu0", kBegin);
  EXPECT_FALSE(r.Next().has_value());
}

}  // namespace
}  // namespace trine
