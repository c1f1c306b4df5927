#include "backends/hip/options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::hip {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const std::string& text) {
  const auto options = ParseOptions(text);
  return options.ok() ? "" : std::string(options.status().message());
}

TEST(HipOptions, AreReadByName) {
  const auto options = ParseOptions(
      ";graphs=0;pdl=0;unit=mma;wave=64;order=random;seed=9;memory=4096;"
      "devices=2;integrated=1;fail=start:12:1;stage=4096;code=0;crash=1;register=0;pace=newest;"
      "peers=lying");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->graphs);
  EXPECT_FALSE(options->early);
  EXPECT_TRUE(options->fuse);
  EXPECT_EQ(options->unit, MatrixUnit::kMma);
  EXPECT_EQ(options->emulator.wave, 64u);
  EXPECT_EQ(options->emulator.order, emulator::Order::kRandom);
  EXPECT_EQ(options->emulator.seed, 9u);
  EXPECT_EQ(options->device.memory_bytes, 4096u);
  EXPECT_EQ(options->device.devices, 2u);
  EXPECT_TRUE(options->device.integrated);
  EXPECT_EQ(options->device.failing, emulator::Call::kStart);
  EXPECT_EQ(options->device.failing_from, 12u);
  EXPECT_EQ(options->device.failing_device, 1u);
  EXPECT_EQ(options->stage_bytes, 4096u);
  EXPECT_FALSE(options->device.has_code);
  EXPECT_TRUE(options->device.crashes);
  EXPECT_FALSE(options->device.registers);
  EXPECT_EQ(options->device.pace, emulator::Pace::kNewest);
  EXPECT_EQ(options->device.peers, emulator::Peers::kLying);
  EXPECT_EQ(ParseOptions("fail=copy:2")->device.failing_device, 0u);
  EXPECT_TRUE(ParseOptions("")->fuse);
  EXPECT_TRUE(ParseOptions("")->early);
}

TEST(HipOptions, RefuseWhatTheyAreNot) {
  EXPECT_THAT(Refusal("rubbish"), HasSubstr("key=value;key=value, not \"rubbish\""));
  EXPECT_THAT(Refusal("=1"), HasSubstr("key=value"));
  EXPECT_THAT(Refusal("speed=11"), HasSubstr("unknown option \"speed\""));
  EXPECT_THAT(Refusal("fuse=yes"), HasSubstr("\"fuse\" is one of 0, 1, not \"yes\""));
  EXPECT_THAT(Refusal("unit=abacus"), HasSubstr("dot4, mma, wmma, mfma, wmma-gfx12, mfma-gfx942"));
  EXPECT_THAT(Refusal("wave=48"), HasSubstr("32, 64"));
  EXPECT_THAT(Refusal("memory=much"), HasSubstr("a number"));
  EXPECT_THAT(Refusal("fail=start"), HasSubstr("a number"));
  EXPECT_THAT(Refusal("fail=everything:1"), HasSubstr("malloc"));
  EXPECT_THAT(Refusal("fail=start:1:x"), HasSubstr("\"fail\" is one of 0, 1, 2"));
  EXPECT_THAT(Refusal("stage=0"), HasSubstr("at least 1 byte"));
  EXPECT_THAT(Refusal("pace=slow"), HasSubstr("at-once, oldest, newest, random"));
  EXPECT_THAT(Refusal("peers=some"), HasSubstr("good, none, lying"));
}

}  // namespace
}  // namespace trine::hip
