// Runs models through the HIP plugin on the emulator: the CPU's bits and the CPU's text, also with
// a split over three tiers, and what happens when a device fails.
#include <ostream>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

struct Answer {
  std::string hash, text;
  bool operator==(const Answer&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Answer& answer) {
  return out << answer.hash << " " << answer.text;
}

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kJob[] =
    "generate --plugin '" TRINE_HIP_PLUGIN "' -m '" TRINE_SHIPPED_MODEL
    "' -p 'There was once a king who had three sons' -n 3 --temp 0 --logits-hash --json "
    "--tensor-split ";

class HipModelTest : public CliFixture {
 protected:
  // The emulator is slow.
  static bool IsLong() { return std::getenv("TRINE_LONG") != nullptr; }

  Answer Generate(const std::string& split, const std::string& tuning = "") {
    const Output output = Trine(kJob + split, "TRINE_HIP_TUNING='" + tuning + "'");
    EXPECT_EQ(output.code, 0) << split << " " << tuning << "\n" << output.errors;
    const auto json = nlohmann::json::parse(output.text, nullptr, false);
    if (json.is_discarded()) return {"no answer: " + output.text, output.errors};
    if (split.find("dgpu") != std::string::npos) {
      EXPECT_THAT(json["placement"].dump(), HasSubstr("dgpu0")) << split;
    }
    return {json.value("logits_hash", "no hash"), json.value("text", "no text")};
  }
};

TEST_F(HipModelTest, TheShippedModelIsTheCpus) {
  const Answer expected = Generate("cpu:32");
  std::vector<const char*> splits = {"dgpu:32"};
  if (IsLong()) splits.insert(splits.end(), {"cpu:16,dgpu:16", "dgpu:1,cpu:31"});
  for (const char* split : splits) EXPECT_EQ(Generate(split), expected) << split;
}

TEST_F(HipModelTest, NoScheduleOrTuningChangesABit) {
  const Answer expected = Generate("cpu:32");
  for (const char* tuning : {"wave=64;order=random", "order=reverse", "fuse=0", "graphs=0",
                             "unit=mma", "unit=dot4;fuse=0", "unit=wmma", "unit=mfma;wave=64"}) {
    EXPECT_EQ(Generate(IsLong() ? "cpu:24,dgpu:8" : "cpu:29,dgpu:3", tuning), expected) << tuning;
  }
}

#ifdef TRINE_WITH_VULKAN
TEST_F(HipModelTest, ThreeTiersAreTheCpu) {
  EXPECT_EQ(Generate("cpu:4,igpu:12,dgpu:16"), Generate("cpu:32"));
}

// The line at the start, the counters and the faults agree about where an explicit split runs. No
// guessed time takes a tier's layers to another device while text is written.
TEST_F(HipModelTest, AnExplicitSplitIsWhatRuns) {
  const std::string job = std::string(kJob) + "cpu:4,igpu:12,dgpu:16";
  const Output sound = Trine(job, "TRINE_CALIBRATION=off");
  ASSERT_EQ(sound.code, 0) << sound.errors;
  EXPECT_THAT(sound.errors,
              ::testing::ContainsRegex("Tri-Tier: CPU\\(4L.*iGPU0\\(12L.*dGPU0\\(16L"));
  EXPECT_THAT(sound.errors, Not(HasSubstr("decoding")));
  const auto json = nlohmann::json::parse(sound.text, nullptr, false);
  ASSERT_EQ(json["placement"].size(), 3u);
  for (const auto& segment : json["placement"]) {
    EXPECT_GE(segment["passes"], 3) << segment;
    // The prompt is the one pass with which another device may help. The line says so.
    const bool helped = segment.contains("helper");
    EXPECT_LE(segment.value("detours", 0), 1) << segment;
    if (helped) {
      EXPECT_THAT(sound.errors, HasSubstr("prompts ")) << segment;
    }
  }
  for (const char* device : {"cpu", "igpu", "dgpu"}) {
    const std::string fault = std::string(device) + ":lost@token=2";
    const Output faulty = Trine(job, "TRINE_CALIBRATION=off TRINE_FAULT='" + fault + "'");
    ASSERT_EQ(faulty.code, 0) << faulty.errors;
    EXPECT_THAT(faulty.errors, ::testing::ContainsRegex(std::string(device) + "0? is lost"))
        << fault;
    EXPECT_THAT(faulty.errors, Not(HasSubstr("never happened"))) << fault;
    const auto after = nlohmann::json::parse(faulty.text, nullptr, false);
    EXPECT_EQ(after.value("logits_hash", "none"), json.value("logits_hash", "")) << fault;
  }
}
#endif

// Some of the calls belong to the self-test, others to loading and running the model. Wherever a
// fault happens, there must be a message, and the process must survive.
TEST_F(HipModelTest, ADeviceThatFailsIsASentence) {
  for (const char* call : {"start", "copy", "synchronize", "malloc", "host-malloc", "capture"}) {
    for (const char* from : {":1", ":60"}) {
      const std::string fault = std::string("fail=") + call + from;
      const Output output =
          Trine(std::string(kJob) + "cpu:31,dgpu:1", "TRINE_HIP_TUNING='" + fault + "'");
      // A call may not be made that often.
      if (output.code == 0 && fault.back() == '0') continue;
      EXPECT_EQ(output.code, 1) << fault << "\n" << output.text << output.errors;
      EXPECT_THAT(output.errors, HasSubstr("trine: ")) << fault;
    }
  }
}

TEST_F(HipModelTest, TwoDevicesAreTheCpu) {
  EXPECT_EQ(Generate("cpu:8,dgpu0:12,dgpu1:12", "devices=2;pace=newest"), Generate("cpu:32"));
}

// The child process that tries the plugin ends; the program itself goes on, and reports it.
TEST_F(HipModelTest, ARuntimeThatEndsItsProcessIsAFinding) {
  const Output output = Trine("detect --plugin '" TRINE_HIP_PLUGIN "'", "TRINE_HIP_TUNING=crash=1");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.text, HasSubstr("crashed with SIGABRT (abort) while being opened"));
}

TEST_F(HipModelTest, ADeviceWithoutCodeIsAFinding) {
  const Output output = Trine("detect --plugin '" TRINE_HIP_PLUGIN "'", "TRINE_HIP_TUNING=code=0");
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_THAT(output.text, HasSubstr("this build has no code for host"));
}

TEST_F(HipModelTest, WantOfMemoryIsASentence) {
  const Output output = Trine(std::string(kJob) + "dgpu:32", "TRINE_HIP_TUNING=memory=8000000");
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.errors, HasSubstr("MiB")) << output.errors;
}

TEST_F(HipModelTest, TheEmulatorIsNeverUsedUnasked) {
  const Output output = Trine(std::string(kJob) + "dgpu:32", "TRINE_HIP_ALLOW_HOST=0");
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.errors, HasSubstr("TRINE_HIP_ALLOW_HOST=1"));
}

}  // namespace
}  // namespace trine
