#include "plugins/fault/fault_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::fault {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

Fault One(const std::string& text) {
  const auto spec = FaultSpec::Parse(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  if (!spec.ok() || spec->faults.size() != 1) return {};
  return spec->faults[0];
}

std::string Refusal(const std::string& text) {
  const auto spec = FaultSpec::Parse(text);
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(spec.status().message());
}

TEST(FaultSpecTest, ReadsKindsAndMoments) {
  const Fault lost = One("dgpu:lost@token=17");
  EXPECT_EQ(lost.device, "dgpu");
  EXPECT_EQ(lost.text, "dgpu:lost@token=17");
  EXPECT_EQ(lost.kind, Kind::kLost);
  EXPECT_EQ(lost.moment, Moment::kToken);
  EXPECT_EQ(lost.first, 17u);
  EXPECT_EQ(lost.last, 17u);
  EXPECT_EQ(lost.back, Fault::Back::kNever);
  EXPECT_EQ(One("igpu:oom@alloc=5").moment, Moment::kAlloc);
  EXPECT_EQ(One("cpu:hang@run=3").kind, Kind::kHang);
  EXPECT_EQ(One("cpu:oom@import=1").moment, Moment::kImport);
  EXPECT_EQ(One("cpu:oom@plan=1").moment, Moment::kPlan);
  EXPECT_EQ(One("cpu:lost@shutdown").moment, Moment::kShutdown);
  EXPECT_EQ(One("cpu:hang@free=3").moment, Moment::kFree);
  const Fault load = One("ROCm0:oom@load");
  EXPECT_EQ(load.moment, Moment::kLoad);
  EXPECT_EQ(load.last, 1u);
}

TEST(FaultSpecTest, ReadsWhichCalls) {
  EXPECT_EQ(One("cpu:oom@alloc").first, 1u);
  EXPECT_EQ(One("cpu:oom@alloc").last, Fault::kAlways);
  EXPECT_EQ(One("cpu:oom@alloc=4+").first, 4u);
  EXPECT_EQ(One("cpu:oom@alloc=4+").last, Fault::kAlways);
  EXPECT_EQ(One("cpu:oom@alloc=4-9").first, 4u);
  EXPECT_EQ(One("cpu:oom@alloc=4-9").last, 9u);
}

TEST(FaultSpecTest, ReadsValuesAndOptions) {
  EXPECT_EQ(One("cpu:garbage@run=9").junk, Junk::kNan);
  EXPECT_EQ(One("cpu:garbage=bits@run=9").junk, Junk::kBits);
  EXPECT_EQ(One("cpu:garbage=status@alloc=1").junk, Junk::kStatus);
  EXPECT_EQ(One("cpu:garbage=size@query=1").junk, Junk::kSize);
  EXPECT_EQ(One("cpu:slow=250@run").time, milliseconds(250));
  EXPECT_EQ(One("cpu:slow=3s@run").time, milliseconds(3000));
  EXPECT_EQ(One("cpu:timeout=50ms@run=1").time, milliseconds(50));
  EXPECT_GT(One("cpu:timeout@run=1").time, milliseconds(0));
  EXPECT_TRUE(One("cpu:hang@run=3,in=team").in_team);
  const Fault random = One("*:lost@random,seed=42,rate=0.01");
  EXPECT_EQ(random.seed, 42u);
  EXPECT_EQ(random.rate, 0.01);
  EXPECT_EQ(One("dgpu:lost@run=5,back=3s").back, Fault::Back::kAfter);
  EXPECT_EQ(One("dgpu:lost@run=5,back=3s").back_after, milliseconds(3000));
  EXPECT_EQ(One("dgpu:lost@run=5,back@open=2").back, Fault::Back::kOpen);
  EXPECT_EQ(One("dgpu:lost@run=5,back@open=2").back_open, 2u);
}

TEST(FaultSpecTest, ReadsSeveral) {
  const auto spec = FaultSpec::Parse(" dgpu:lost@run=1 ; cpu : oom@alloc=2 , ;;");
  EXPECT_FALSE(spec.ok());  // the option is empty
  const auto good = FaultSpec::Parse(" dgpu:lost@run=1 , back=0 ; cpu : oom@alloc=2 ;;");
  ASSERT_TRUE(good.ok()) << good.status();
  ASSERT_EQ(good->faults.size(), 2u);
  EXPECT_EQ(good->faults[1].device, "cpu");
  EXPECT_TRUE(FaultSpec::Parse("")->faults.empty());
}

// The error names the part and the fault that contains it.
TEST(FaultSpecTest, RefusesByName) {
  EXPECT_THAT(Refusal("dgpu"), HasSubstr("'dgpu': a fault is written DEVICE:KIND@MOMENT"));
  EXPECT_THAT(Refusal(":lost@run=1"), HasSubstr("DEVICE:KIND@MOMENT"));
  EXPECT_THAT(Refusal("cpu:lost"), HasSubstr("'cpu:lost': it has no moment"));
  EXPECT_THAT(Refusal("cpu:oom@load;cpu:lots@run=1"),
              HasSubstr("in 'cpu:lots@run=1': 'lots': no kind of fault; there are: oom, lost"));
  EXPECT_THAT(Refusal("cpu:lost@lunch=1"), HasSubstr("'lunch': no moment; there are: open, load"));
  EXPECT_THAT(Refusal("cpu:lost@run=one"), HasSubstr("'run=one': a whole number is missing"));
  EXPECT_THAT(Refusal("cpu:lost@run=-1"), HasSubstr("'run=-1'"));
  EXPECT_THAT(Refusal("cpu:lost@run=0"), HasSubstr("counted from 1"));
  EXPECT_THAT(Refusal("cpu:lost@run=5-4"), HasSubstr("ranges go up"));
  EXPECT_THAT(Refusal("cpu:lost@run=4-5+"), HasSubstr("either a range or an open end"));
  EXPECT_THAT(Refusal("cpu:lost@run="), HasSubstr("'run=': a whole number"));
  EXPECT_THAT(Refusal("cpu:lost@run=99999999999999999999"), HasSubstr("a whole number"));
  EXPECT_THAT(Refusal("cpu:lost@load=2"), HasSubstr("'load=2': this moment takes no number"));
  EXPECT_THAT(Refusal("cpu:lost=3@run=1"), HasSubstr("'lost=3': this kind takes no value"));
  EXPECT_THAT(Refusal("cpu:garbage=rubbish@run"), HasSubstr("'rubbish': no kind of garbage"));
  EXPECT_THAT(Refusal("cpu:slow@run"), HasSubstr("'slow': a time such as"));
  EXPECT_THAT(Refusal("cpu:slow=2h@run"), HasSubstr("'slow=2h': a time such as"));
  EXPECT_THAT(Refusal("cpu:slow=99999999s@run"), HasSubstr("more than a day"));
  EXPECT_THAT(Refusal("cpu:lost@run=1,often"), HasSubstr("'often': no option; there are: rate="));
  EXPECT_THAT(Refusal("cpu:lost@run=1,back=soon"), HasSubstr("'back=soon': a time"));
  EXPECT_THAT(Refusal("cpu:lost@run=1,back@open=0"), HasSubstr("counted from 1"));
  EXPECT_THAT(Refusal("cpu:lost@random,rate=2"), HasSubstr("'rate=2': a rate lies above 0"));
  EXPECT_THAT(Refusal("cpu:lost@random,rate=nan"), HasSubstr("'rate=nan'"));
  EXPECT_THAT(Refusal("cpu:lost@random,rate=0.1,seed=x"), HasSubstr("'seed=x'"));
}

TEST(FaultSpecTest, RefusesWhatMakesNoSense) {
  EXPECT_THAT(Refusal("cpu:lost@random"), HasSubstr("@random needs a rate="));
  EXPECT_THAT(Refusal("cpu:lost@run=1,rate=0.5"), HasSubstr("rate= goes with @random"));
  EXPECT_THAT(Refusal("cpu:chaos@run=1"), HasSubstr("chaos is @random"));
  EXPECT_THAT(Refusal("cpu:oom@shutdown"), HasSubstr("never runs out"));
  EXPECT_THAT(Refusal("cpu:oom@free=2"), HasSubstr("never runs out"));
  EXPECT_THAT(Refusal("cpu:garbage=status@free"), HasSubstr("answers nothing"));
  EXPECT_THAT(Refusal("cpu:garbage=size@run=1"), HasSubstr("sizes are answered @query"));
  EXPECT_THAT(Refusal("cpu:garbage@alloc=1"), HasSubstr("values come out of a @run"));
  EXPECT_THAT(Refusal("cpu:garbage=status@shutdown"), HasSubstr("answers nothing"));
  EXPECT_THAT(Refusal("cpu:lost@run=1,in=team"), HasSubstr("in=team is for a hang"));
  EXPECT_THAT(Refusal("cpu:hang@alloc=1,in=team"), HasSubstr("in=team is for a hang"));
  EXPECT_THAT(Refusal("cpu:oom@alloc=1,back=1s"), HasSubstr("nothing is lost"));
}

TEST(FaultSpecTest, KnowsWhomItConcerns) {
  const DeviceNames first{"dgpu0", "ROCm0"}, second{"dgpu1", "ROCm1"}, cpu{"cpu", "CPU"};
  const auto concerns = [](const std::string& device, const DeviceNames& names) {
    return Concerns(One(device + ":lost@run=1"), names);
  };
  EXPECT_TRUE(concerns("dgpu", first));
  EXPECT_FALSE(concerns("dgpu", second));
  EXPECT_TRUE(concerns("DGPU1", second));
  EXPECT_TRUE(concerns("ROCm1", second));
  EXPECT_FALSE(concerns("rocm1", second));
  EXPECT_TRUE(concerns("cpu", cpu));
  EXPECT_TRUE(concerns("CPU", cpu));
  EXPECT_FALSE(concerns("igpu", first));
  EXPECT_FALSE(concerns("dgpu1", DeviceNames{"dgpu10", "ROCm10"}));
  EXPECT_TRUE(concerns("*", cpu));
  EXPECT_TRUE(concerns("any", second));
}

}  // namespace
}  // namespace trine::fault
